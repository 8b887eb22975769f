package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units from the greatest down; the first that divides a size is the one it is printed with.
var units = []struct {
	name string
	size int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// ParseSize reads a number of bytes: digits, with a fraction if a unit follows, and one of B, KiB,
// MiB and GiB. The unit's case does not matter; KB, MB and GB are refused as ambiguous.
func ParseSize(s string) (int64, error) {
	text := strings.TrimSpace(s)
	unit := int64(1)
	number := text
	for _, u := range units {
		if n := len(text) - len(u.name); n > 0 && strings.EqualFold(text[n:], u.name) {
			number, unit = strings.TrimSpace(text[:n]), u.size
			break
		}
	}
	if v, err := strconv.ParseInt(number, 10, 64); err == nil {
		if v < 0 || v > math.MaxInt64/unit {
			return 0, fmt.Errorf("%q: out of range", s)
		}
		return v * unit, nil
	}
	v, err := strconv.ParseFloat(number, 64)
	plain := strings.Trim(number, "0123456789.") == "" // no exponents, signs, inf or hex
	if err != nil || !plain || unit == 1 || v*float64(unit) >= math.MaxInt64 {
		return 0, fmt.Errorf("%q: want a size such as 512KiB, 64MiB or 1.5GiB", s)
	}
	return int64(v * float64(unit)), nil
}

// FormatSize writes bytes so that ParseSize reads them back exactly.
func FormatSize(n int64) string {
	for _, u := range units {
		if n != 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return "0"
}

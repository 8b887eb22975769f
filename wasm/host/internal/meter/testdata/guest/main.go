// Command guest is the Go program that the tests of package meter run metered and unmetered.
package main

import (
	"bytes"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"
)

func main() {}

// work makes some garbage in goroutines and returns a checksum that depends on n alone.
//
//go:wasmexport work
func work(n uint32) uint64 {
	var wg sync.WaitGroup
	results := make([][]byte, 4)
	for i := range results {
		wg.Go(func() { results[i] = sorted(n + uint32(i)) })
	}
	wg.Wait()
	h := fnv.New64a()
	h.Write(bytes.Join(results, []byte{';'}))
	return h.Sum64()
}

func sorted(n uint32) []byte {
	counts := map[string]int{}
	x := n
	for range n {
		x = x*1664525 + 1013904223
		counts[strconv.FormatUint(uint64(x>>20), 36)]++
	}
	words := make([]string, 0, len(counts))
	for w := range counts {
		words = append(words, w)
	}
	slices.Sort(words)
	var out []byte
	for _, w := range words {
		out = append(out, w...)
		out = strconv.AppendInt(append(out, '='), int64(counts[w]), 10)
	}
	return append(out, strconv.FormatFloat(float64(x)/3, 'g', -1, 64)...)
}

// spin never returns.
//
//go:wasmexport spin
func spin() {
	for {
	}
}

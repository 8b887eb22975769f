package config

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// decoder walks a YAML tree and gathers faults. Every reader below returns its zero value after a
// fault, so that walking goes on and one run reports all of them.
type decoder struct{ faults }

// node records a fault at n.
func (d *decoder) node(n ast.Node, format string, args ...any) {
	line, column := place(n)
	d.at(line, column, format, args...)
}

// place returns where n begins in the file.
func place(n ast.Node) (line, column int) {
	switch v := n.(type) {
	case *ast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 {
			return place(v.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return place(v.Key)
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line, t.Position.Column
	}
	return 0, 0
}

// field is a key that a mapping may have.
type field struct {
	name string
	read func(ast.Node)
}

// mapping reads a mapping with known keys. what names it in errors.
func (d *decoder) mapping(n ast.Node, what string, fields ...field) {
	d.entries(n, what, func(key string, at ast.Node, value ast.Node) {
		names := make([]string, len(fields))
		for i, f := range fields {
			if f.name == key {
				if !isNull(value) {
					f.read(value)
				}
				return
			}
			names[i] = f.name
		}
		d.node(at, "unknown key %q in %s%s", key, what, suggest(key, names))
	})
}

// entries calls each for the entries of a mapping.
func (d *decoder) entries(n ast.Node, what string, each func(key string, at, value ast.Node)) {
	var values []*ast.MappingValueNode
	switch v := n.(type) {
	case *ast.MappingNode:
		values = v.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{v}
	default:
		d.node(n, "%s: want a mapping of keys, got %s", what, kindOf(n))
		return
	}
	seen := make(map[string]bool, len(values))
	for _, v := range values {
		key, ok := v.Key.(ast.ScalarNode)
		if !ok || v.Key.Type() != ast.StringType {
			d.node(v.Key, "%s: want a plain key, got %s", what, kindOf(v.Key))
			continue
		}
		name := key.GetToken().Value
		if seen[name] {
			d.node(v.Key, "key %q twice in %s", name, what)
			continue
		}
		seen[name] = true
		each(name, v.Key, v.Value)
	}
}

// sequence calls each for the elements of a list.
func (d *decoder) sequence(n ast.Node, what string, each func(ast.Node)) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.node(n, "%s: want a list, got %s", what, kindOf(n))
		return
	}
	for _, v := range s.Values {
		each(v)
	}
}

// text reads a string.
func (d *decoder) text(n ast.Node, what string) (string, bool) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	}
	hint := ""
	if _, ok := n.(ast.ScalarNode); ok {
		hint = fmt.Sprintf("; write %q in quotes", n.GetToken().Value)
	}
	d.node(n, "%s: want text, got %s%s", what, kindOf(n), hint)
	return "", false
}

// word reads one of a few words.
func (d *decoder) word(n ast.Node, what string, words ...string) (string, bool) {
	s, ok := d.text(n, what)
	if !ok {
		return "", false
	}
	for _, w := range words {
		if w == s {
			return s, true
		}
	}
	d.node(n, "%s %q: want %s%s", what, s, strings.Join(words, " or "), suggest(s, words))
	return "", false
}

// texts reads a list of strings.
func (d *decoder) texts(n ast.Node, what string, each func(string, ast.Node)) {
	d.sequence(n, what, func(v ast.Node) {
		if s, ok := d.text(v, what); ok {
			each(s, v)
		}
	})
}

// boolean reads true or false.
func (d *decoder) boolean(n ast.Node, what string) bool {
	if b, ok := n.(*ast.BoolNode); ok {
		return b.Value
	}
	d.node(n, "%s: want true or false, got %s", what, kindOf(n))
	return false
}

// count reads a whole number of at least 0 and at most limit.
func (d *decoder) count(n ast.Node, what string, limit int64) int64 {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		d.node(n, "%s: want a whole number, got %s", what, kindOf(n))
		return 0
	}
	v, ok := integer(i)
	if !ok || v < 0 || v > limit {
		d.node(n, "%s %s: want 0 to %d", what, i.GetToken().Value, limit)
		return 0
	}
	return v
}

func integer(n *ast.IntegerNode) (int64, bool) {
	switch v := n.Value.(type) {
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	}
	return 0, false
}

// size reads bytes: a number, or a number with B, KiB, MiB or GiB.
func (d *decoder) size(n ast.Node, what string) int64 {
	if _, ok := n.(*ast.IntegerNode); ok {
		return d.count(n, what, math.MaxInt64)
	}
	s, ok := d.text(n, what)
	if !ok {
		return 0
	}
	v, err := ParseSize(s)
	if err != nil {
		d.node(n, "%s %v", what, err)
	}
	return v
}

// duration reads a Go duration of 0 or more.
func (d *decoder) duration(n ast.Node, what string) time.Duration {
	if i, ok := n.(*ast.IntegerNode); ok {
		if v, _ := integer(i); v == 0 {
			return 0
		}
		d.node(n, "%s %s: want a duration with its unit, such as %ss or 720h", what, i.GetToken().Value, i.GetToken().Value)
		return 0
	}
	s, ok := d.text(n, what)
	if !ok {
		return 0
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		d.node(n, "%s %q: want a duration such as 30s, 15m or 720h", what, s)
		return 0
	}
	return v
}

func isNull(n ast.Node) bool { return n == nil || n.Type() == ast.NullType }

func kindOf(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	case ast.SequenceType:
		return "a list"
	case ast.NullType:
		return "nothing"
	case ast.BoolType:
		return "true or false"
	case ast.IntegerType, ast.FloatType, ast.InfinityType, ast.NanType:
		return "a number"
	case ast.StringType, ast.LiteralType:
		return "text"
	case ast.AnchorType, ast.AliasType, ast.MergeKeyType:
		return "an anchor or alias, which are not supported"
	case ast.TagType:
		return "a tag, which is not supported"
	}
	return "something else"
}

package config

import (
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

func (d *decoder) outboxes(n ast.Node) []Outbox {
	var out []Outbox
	lines := make(map[string]int)
	d.sequence(n, "outboxes", func(n ast.Node) {
		var at ast.Node
		before := len(d.list)
		o := d.outbox(n, &at)
		if at == nil {
			at = n
		}
		line, _ := place(at)
		if first, twice := lines[o.ID]; twice && o.ID != "" {
			d.node(at, "outbox id %q is taken by line %d", o.ID, first)
		}
		lines[o.ID] = line
		clean := len(d.list) == before // one fault is enough: do not call a mistyped key missing, too
		if o.ID == "" && clean {
			d.node(n, "outbox without id: want a name that stays, as its cursor is kept under it")
		}
		if o.Sink.Name == "" && clean {
			d.node(n, "outbox %q without sink: want the name of a built-in or plugin:NAME", o.ID)
		}
		out = append(out, o)
	})
	return out
}

// outbox reads one outbox; id is set to where its id is written.
func (d *decoder) outbox(n ast.Node, id *ast.Node) Outbox {
	o := Outbox{Serializer: Ref{Name: DefaultSerializer}, OnPoison: PoisonBlock}
	d.mapping(n, "an outbox",
		field{"id", func(n ast.Node) { *id, o.ID = n, d.optionalName(n, "outbox id") }},
		field{"match", func(n ast.Node) {
			d.sequence(n, "match", func(n ast.Node) { o.Match = append(o.Match, d.pattern(n)) })
		}},
		field{"serializer", func(n ast.Node) { o.Serializer = d.ref(n, "serializer") }},
		field{"serializer_with", func(n ast.Node) { o.SerializerWith = d.settings(n, "serializer_with") }},
		field{"sink", func(n ast.Node) {
			o.Sink = d.ref(n, "sink")
			if o.Sink == (Ref{}) {
				d.node(n, "sink: want the name of a built-in or plugin:NAME")
			}
		}},
		field{"with", func(n ast.Node) { o.With = d.settings(n, "with") }},
		field{"start", func(n ast.Node) { o.Start = d.start(n) }},
		field{"on_poison", func(n ast.Node) { d.word(n, "on_poison", string(PoisonBlock)) }})
	return o
}

func (d *decoder) ref(n ast.Node, what string) Ref {
	s, ok := d.text(n, what)
	if !ok || s == noSerializer || s == "" {
		return Ref{}
	}
	name, plugin := strings.CutPrefix(s, pluginPrefix)
	if !names.MatchString(name) {
		d.node(n, "%s %q: want NAME or plugin:NAME; %s", what, s, nameRule)
	}
	return Ref{Name: name, Plugin: plugin}
}

// start reads beginning, now, or position N.
func (d *decoder) start(n ast.Node) Start {
	s, ok := d.text(n, "start")
	if !ok {
		return Start{}
	}
	switch digits, isPosition := strings.CutPrefix(s, "position "); {
	case s == "beginning":
		return Start{}
	case s == "now":
		return Start{Now: true}
	case isPosition:
		if p, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64); err == nil && p >= 0 {
			return Start{Position: p}
		}
	}
	d.node(n, "start %q: want beginning, now or position N%s", s, suggest(s, []string{"beginning", "now"}))
	return Start{}
}

// maxDepth bounds how deep settings may nest.
const maxDepth = 16

// settings reads a free mapping for a sink or serializer.
func (d *decoder) settings(n ast.Node, what string) map[string]any {
	out := make(map[string]any)
	d.entries(n, what, func(key string, _, value ast.Node) { out[key] = d.value(value, what+"."+key, maxDepth) })
	return out
}

func (d *decoder) value(n ast.Node, what string, depth int) any {
	if isNull(n) {
		return nil
	}
	if depth == 0 {
		d.node(n, "%s: nested deeper than %d", what, maxDepth)
		return nil
	}
	switch v := n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		s, _ := d.text(n, what)
		if err := checkReferences(s); err != nil {
			d.node(n, "%s: %v", what, err)
		}
		return s
	case *ast.BoolNode:
		return v.Value
	case *ast.IntegerNode:
		if i, ok := integer(v); ok {
			return i
		}
		d.node(n, "%s: %s is out of range", what, v.GetToken().Value)
		return nil
	case *ast.FloatNode:
		if math.IsInf(v.Value, 0) {
			d.node(n, "%s: %s is out of range", what, v.GetToken().Value)
			return nil
		}
		return v.Value
	case *ast.SequenceNode:
		list := []any{}
		for _, e := range v.Values {
			list = append(list, d.value(e, what, depth-1))
		}
		return list
	case *ast.MappingNode, *ast.MappingValueNode:
		m := make(map[string]any)
		d.entries(n, what, func(key string, _, value ast.Node) { m[key] = d.value(value, what+"."+key, depth-1) })
		return m
	}
	d.node(n, "%s: want text, a number, true or false, a list or a mapping, got %s", what, kindOf(n))
	return nil
}

package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/statesman-dev/statesman"
)

// maxFile bounds a configuration; the YAML reader's own memory is a multiple of it.
const maxFile = 1 << 20

// Load reads the file at path. Errors: *Error for what is wrong in it, else the file system's.
func Load(path string) (*Config, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if info.IsDir() {
		return nil, statesman.Invalid("read configuration %s: it is a directory", path)
	}
	if info.Size() > maxFile {
		return nil, statesman.Invalid("read configuration %s: %d bytes, at most %d are allowed", path, info.Size(), maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(filepath.Base(path), text)
}

// Parse reads a configuration; name is what errors call it. Errors are *Error and hold every
// fault that was found.
func Parse(name string, text []byte) (*Config, error) {
	d := &decoder{faults: faults{file: name, lines: strings.Split(string(text), "\n")}}
	if len(text) > maxFile {
		d.at(0, 0, "%d bytes, at most %d are allowed", len(text), maxFile)
		return nil, d.err()
	}
	root := d.parse(text)
	cfg := Default()
	if root != nil {
		d.root(root, cfg)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return cfg, nil
}

// parse returns the document's root, nil for an empty document or after a fault.
func (d *decoder) parse(text []byte) (root ast.Node) {
	// The YAML library has a history of panics on odd input; a broken file must stay an error.
	defer func() {
		if p := recover(); p != nil {
			d.at(0, 0, "not readable as YAML (%v)", p)
			root = nil
		}
	}()
	f, err := parser.ParseBytes(text, 0)
	if err != nil {
		var s *yaml.SyntaxError
		if errors.As(err, &s) && s.GetToken() != nil && s.GetToken().Position != nil {
			pos := s.GetToken().Position
			d.at(pos.Line, pos.Column, "not valid YAML: %s", s.GetMessage())
		} else {
			d.at(0, 0, "not valid YAML: %s", firstLine(err.Error()))
		}
		return nil
	}
	for _, doc := range f.Docs {
		if doc.Body == nil || isComment(doc.Body) {
			continue
		}
		if root != nil {
			d.node(doc.Body, "a second document; the configuration is one")
			return nil
		}
		root = doc.Body
	}
	return root
}

func isComment(n ast.Node) bool { return n.Type() == ast.CommentType }

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

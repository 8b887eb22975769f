package meter

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

const (
	magic      = "\x00asm"
	headerSize = 8
)

// checkHeader refuses what does not begin like a core module, and says what it looks like instead.
func checkHeader(b []byte) error {
	no := func(format string, args ...any) error {
		return &Error{Reason: fmt.Sprintf(format, args...), Err: ErrNotModule}
	}
	switch {
	case len(b) == 0:
		return no("the file is empty")
	case len(b) < headerSize && (bytes.HasPrefix([]byte(magic), b) || bytes.HasPrefix(b, []byte(magic))):
		return no("the file ends within the header, after %d bytes", len(b))
	case !bytes.HasPrefix(b, []byte(magic)):
		return no("%s", resemblance(b))
	}
	version, layer := binary.LittleEndian.Uint16(b[4:]), binary.LittleEndian.Uint16(b[6:])
	switch {
	case layer == 1:
		return no("this is a WebAssembly component, not a core module")
	case version != 1 || layer != 0:
		return no("binary version %d (layer %d), want 1", version, layer)
	}
	return nil
}

// signatures are how files begin that end up in a plugins directory by mistake.
var signatures = []struct{ prefix, what string }{
	{"\x1f\x8b", "gzip data: decompress it first"},
	{"\x28\xb5\x2f\xfd", "zstd data: decompress it first"},
	{"PK\x03\x04", "a zip archive"},
	{"BZh", "bzip2 data: decompress it first"},
	{"\xfd7zXZ", "xz data: decompress it first"},
	{"\x7fELF", "an ELF program for this or another machine"},
	{"MZ", "a Windows program"},
	{"\xcf\xfa\xed\xfe", "a macOS program"},
	{"\xca\xfe\xba\xbe", "a macOS program or a Java class"},
	{"!<arch>", "an object archive"},
	{"BC\xc0\xde", "LLVM bitcode"},
	{"version https://git-lfs", "a Git LFS pointer, not the file itself"},
	{"#!", "a script"},
}

// texts are the same for text, compared without leading space and letter case.
var texts = []struct{ prefix, what string }{
	{"<!doctype html", "HTML"},
	{"<html", "HTML"},
	{"<head", "HTML"},
	{"<!--", "HTML"},
	{"<?xml", "XML"},
	{"(module", "WebAssembly text: assemble it with wat2wasm first"},
	{"(component", "WebAssembly component text"},
	{"{", "JSON"},
}

func resemblance(b []byte) string {
	for _, s := range signatures {
		if bytes.HasPrefix(b, []byte(s.prefix)) {
			return "this looks like " + s.what
		}
	}
	head := bytes.TrimLeft(bytes.TrimPrefix(b[:min(len(b), 512)], []byte("\xef\xbb\xbf")), " \t\r\n")
	lower := bytes.ToLower(head)
	for _, s := range texts {
		if bytes.HasPrefix(lower, []byte(s.prefix)) {
			return "this looks like " + s.what
		}
	}
	return fmt.Sprintf("it begins with % x, want 00 61 73 6d", b[:min(len(b), 4)])
}

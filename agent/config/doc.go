// Package config reads the agent's one YAML file.
//
// Reading is strict: a key that is not known, a value of the wrong type and a broken rule are all
// errors, each with its line, the line's text and a caret, and all of them are reported at once.
// An empty file is a valid configuration, and [Default] is what it means.
//
// Secrets stay references (${env:NAME}, ${file:PATH}) in a [Config]; only [Config.Resolve] looks
// them up, into a copy, so that printing a Config never prints one.
//
// # What it does not promise
//
// Only the part of YAML that a configuration needs is read: no anchors, aliases, merge keys, tags
// or several documents. Names of sinks, serializers and plugins are not checked to exist; the
// agent does that, as plugins may be dropped in later.
package config

package redisstream

import "strings"

// Class says who can mend an error.
type Class uint8

// The classes.
const (
	Retry    Class = iota // time: the server is away, loading, full, failing over
	Operator              // a person: credentials, permissions, a key of the wrong type, a server that cannot run scripts
)

const insideScripts = "HMGET, HSET, TYPE, XADD, XINFO and XRANGE on the stream and its mark"

// operators are the error codes and texts of a Redis server that waiting does not mend, with the
// way out. They are looked for anywhere in the text: servers before 7 wrap the errors of commands
// in a script, and proxies put words in front.
var operators = []struct{ text, hint string }{
	{"NOAUTH", "give the server's password in the url"},
	// The answer to a long command before a password: the server refuses to read it at all.
	{"unauthenticated multibulk length", "give the server's password in the url"},
	{"unauthenticated bulk length", "give the server's password in the url"},
	{"WRONGPASS", "mend user or password in the url"},
	{"invalid password", "mend user or password in the url"},
	{"AUTH <password> called without any password configured", "take the password out of the url, or set one on the server"},
	{"NOPERM", "let the user run EVAL, EVALSHA, " + insideScripts},
	{"ACL failure in script", "let the user run " + insideScripts},
	{"The user executing the script can't run", "let the user run " + insideScripts},
	{"WRONGTYPE", "ship to another stream, or remove the key that has its name"},
	{"CROSSSLOT", "use a stream name without braces"},
	{"DB index is out of range", "mend the database number in the url"},
	{"invalid DB index", "mend the database number in the url"},
	{"SELECT is not allowed in cluster mode", "use database 0"},
	{"unknown command", "use a server that can run scripts: Redis 7 or Valkey"},
}

// Classify says who can mend an error with this text. What it does not know is worth a retry:
// nothing is lost by waiting.
func Classify(text string) Class {
	if HintFor(text) != "" {
		return Operator
	}
	return Retry
}

// HintFor is the way out of an operator's error, "" for others.
func HintFor(text string) string {
	for _, o := range operators {
		if strings.Contains(text, o.text) {
			return o.hint
		}
	}
	return ""
}

//go:build !unix

package host

const (
	// privateModes is false: access is a matter of lists that the file mode does not show.
	privateModes = false
	openFlags    = 0
)

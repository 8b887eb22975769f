// Package listen opens the sockets of the local API and keeps the secret of the TCP one.
//
// # What it does not promise
//
// Two agents of different stores that are started at the same moment with the same socket path can
// both find nobody listening; the later one then owns the path. The lock of the store keeps two
// agents of one store apart.
package listen

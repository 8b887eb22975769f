package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/statesman-dev/statesman/internal/redisstream"
	"github.com/statesman-dev/statesman/outbox"
)

// failure names the server in an error of the client and tells what a person must mend.
func (s *StreamSink) failure(err error) error {
	named := fmt.Errorf("redis %s: %w", s.addr, err)
	if hint := operatorHint(err); hint != "" {
		return &outbox.OperatorError{Err: named, Hint: hint}
	}
	return named
}

func (s *StreamSink) problem(p *redisstream.Problem) error {
	named := fmt.Errorf("redis %s: %w", s.addr, p)
	if p.Class == redisstream.Operator {
		return &outbox.OperatorError{Err: named, Hint: p.Hint}
	}
	return named
}

// operatorHint is the way out of an error that waiting does not mend, "" for any other.
func operatorHint(err error) string {
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var address *net.AddrError
	switch {
	case errors.As(err, &authority), errors.As(err, &hostname), errors.As(err, &invalid), errors.As(err, &verify):
		return "mend the server's certificate, or trust its authority on this machine"
	case errors.As(err, &record):
		return "the server does not speak TLS there: mend the port, or use redis:// in the url"
	case errors.As(err, &address):
		return "mend host and port in the url"
	}
	return redisstream.HintFor(err.Error())
}

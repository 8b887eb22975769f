package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/statesman-dev/statesman"
)

// Errors of talking to an agent, beside the sentinels of package statesman.
var (
	// ErrUnreachable: no agent answers at the socket or address.
	ErrUnreachable = errors.New("agent not reachable")
	// ErrPermission: the agent answers and refuses this caller.
	ErrPermission = errors.New("not permitted")
)

// Error is a Problem that an agent answered. It matches the sentinel of its code with errors.Is;
// a conflict is also found as *statesman.ConflictError with errors.As.
type Error struct {
	Op      string // "put", "get", …
	Problem Problem
	cause   error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Problem.Detail != "" {
		return e.Problem.Detail
	}
	return fmt.Sprintf("%s: the agent answered %d %s", e.Op, e.Problem.Status, e.Problem.Title)
}

// Unwrap returns what the code stands for.
func (e *Error) Unwrap() error { return e.cause }

// HintOf returns the way out that err carries, "" when there is none.
func HintOf(err error) string {
	var e *Error
	if errors.As(err, &e) && e.Problem.Hint != "" {
		return e.Problem.Hint
	}
	var u *UnreachableError
	if errors.As(err, &u) {
		return u.Hint
	}
	return statesman.HintOf(err)
}

// UnreachableError says where no agent answers. It matches ErrUnreachable.
type UnreachableError struct {
	Where string // unix:PATH or tcp:HOST:PORT
	Err   error
	Hint  string
}

// Error implements error.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no agent answers at %s: %v", e.Where, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Is reports whether target is ErrUnreachable.
func (e *UnreachableError) Is(target error) bool { return target == ErrUnreachable }

// kinds pairs each code with its error, its HTTP status and its title. The order is the order in
// which an error is tried: an unknown outcome says more than the timeout that caused it.
var kinds = []struct {
	code   Code
	err    error // nil: no Go error stands for it
	status int
	title  string
}{
	{CodeUnknown, statesman.ErrUnknown, http.StatusInternalServerError, "outcome unknown"},
	{CodeConflict, statesman.ErrConflict, http.StatusConflict, "the condition does not hold"},
	{CodeNotFound, statesman.ErrNotFound, http.StatusNotFound, "not found"},
	{CodeTooLarge, statesman.ErrTooLarge, http.StatusRequestEntityTooLarge, "too large"},
	{CodeLineage, statesman.ErrLineage, http.StatusConflict, "a cursor of another store"},
	{CodeFull, statesman.ErrFull, http.StatusInsufficientStorage, "the disk is full"},
	{CodeCorrupt, statesman.ErrCorrupt, http.StatusInternalServerError, "stored data is damaged"},
	{CodeLocked, statesman.ErrLocked, http.StatusLocked, "locked by another process"},
	{CodeClosed, statesman.ErrClosed, http.StatusServiceUnavailable, "the store is closed"},
	{CodeUnsupported, errors.ErrUnsupported, http.StatusNotImplemented, "not supported by this store"},
	{CodeInvalid, statesman.ErrInvalid, http.StatusBadRequest, "invalid input"},
	{CodeUnauthorized, ErrPermission, http.StatusUnauthorized, "a token is needed"},
	{CodeForbidden, ErrPermission, http.StatusForbidden, "refused"},
	{CodeTimeout, context.DeadlineExceeded, http.StatusGatewayTimeout, "timed out"},
	{CodeNoRoute, nil, http.StatusNotFound, "no such resource"},
	{CodeMethod, nil, http.StatusMethodNotAllowed, "method not allowed"},
	{CodeMediaType, nil, http.StatusUnsupportedMediaType, "unsupported media type"},
	{CodeInternal, nil, http.StatusInternalServerError, "internal error"},
}

// NewProblem returns a Problem of the given code with its status and title.
func NewProblem(code Code, format string, args ...any) *Problem {
	for _, k := range kinds {
		if k.code == code {
			return &Problem{Type: "urn:statesman:problem:" + string(code), Title: k.title, Status: k.status,
				Detail: fmt.Sprintf(format, args...), Code: code}
		}
	}
	return NewProblem(CodeInternal, "%s", fmt.Sprintf(format, args...))
}

// ProblemOf returns the Problem that describes err, which is not nil.
func ProblemOf(err error) *Problem {
	var e *Error
	if errors.As(err, &e) {
		p := e.Problem
		return &p
	}
	code := CodeInternal
	for _, k := range kinds {
		if k.err != nil && errors.Is(err, k.err) {
			code = k.code
			break
		}
	}
	p := NewProblem(code, "%s", err.Error())
	p.Hint = HintOf(err)
	var c *statesman.ConflictError
	if errors.As(err, &c) {
		p.Address, p.Index = c.Address.String(), c.Index
		p.Current = FromRecord(c.Current).WithoutPayload()
		if c.Current != nil {
			p.CurrentRevision = &c.Current.Revision
		}
	}
	return p
}

// errorOf turns a Problem into an error. cond is the condition that a conflict is about, zero when
// the caller does not know it.
func errorOf(op string, p Problem, cond statesman.Condition) error {
	e := &Error{Op: op, Problem: p}
	for _, k := range kinds {
		if k.code == p.Code {
			e.cause = k.err
			break
		}
	}
	if p.Code == CodeConflict {
		c := &statesman.ConflictError{Condition: cond, Index: p.Index}
		if a, err := statesman.ParseAddress(p.Address); err == nil {
			c.Address = a
		}
		if p.Current != nil {
			if r, err := p.Current.Statesman(); err == nil {
				c.Current = r
			}
		}
		e.cause = c
	}
	return e
}

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// conditionFlags are the flags by which a write says what it expects.
type conditionFlags struct {
	revision int64
	absent   bool
	commitID string
}

func (c *conditionFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Int64Var(&c.revision, "if-revision", 0, "write only if the head has this revision")
	f.StringVar(&c.commitID, "commit-id", "", "makes repeating this write safe: the same id is not written twice in a row")
}

func (c *conditionFlags) condition(cmd *cobra.Command) (statesman.Condition, error) {
	at := cmd.Flags().Changed("if-revision")
	switch {
	case at && c.absent:
		return statesman.Condition{}, usageError("--if-revision and --if-absent exclude each other")
	case at:
		cond := statesman.AtRevision(c.revision)
		return cond, cond.Validate()
	case c.absent:
		return statesman.Absent(), nil
	}
	return statesman.Any(), nil
}

func newPut(g *globals) *cobra.Command {
	var cond conditionFlags
	var partition, contentType, valueType, source string
	cmd := &cobra.Command{
		Use:   "put ROOT/PATH [FILE|-]",
		Short: "Write a value as the next revision of an address",
		Long:  "Write a value, read from FILE or from standard input, as the next revision of an address.",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := address(args[0], partition)
			if err != nil {
				return err
			}
			when, err := cond.condition(cmd)
			if err != nil {
				return err
			}
			body, err := g.payload(args[1:])
			if err != nil {
				return err
			}
			if contentType == "" {
				contentType = sniff(body)
			}
			c := g.client()
			defer c.Close()
			r, err := c.Put(cmd.Context(), a, when, newReader(body),
				&api.PutOptions{ContentType: contentType, ValueType: valueType, Source: source, CommitID: cond.commitID})
			if err != nil {
				return err
			}
			return g.wrote(r)
		},
	}
	cond.add(cmd)
	f := cmd.Flags()
	f.BoolVar(&cond.absent, "if-absent", false, "write only if the address has no record")
	f.StringVar(&partition, "partition", "", "partition of the address")
	f.StringVar(&contentType, "content-type", "", "media type of the value (default: JSON if it parses, else by its bytes)")
	f.StringVar(&valueType, "value-type", "", "name of the value's type (default: the media type)")
	f.StringVar(&source, "source", "", "who writes (default application)")
	return cmd
}

func newDelete(g *globals) *cobra.Command {
	var cond conditionFlags
	var partition string
	cmd := &cobra.Command{
		Use:   "delete ROOT/PATH",
		Short: "Write a cleared revision; history stays",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := address(args[0], partition)
			if err != nil {
				return err
			}
			when, err := cond.condition(cmd)
			if err != nil {
				return err
			}
			c := g.client()
			defer c.Close()
			r, err := c.Delete(cmd.Context(), a, when, &api.PutOptions{CommitID: cond.commitID})
			if err != nil {
				return err
			}
			return g.wrote(r)
		},
	}
	cond.add(cmd)
	cmd.Flags().StringVar(&partition, "partition", "", "partition of the address")
	return cmd
}

// wrote prints the answer to a write.
func (g *globals) wrote(r *api.Record) error {
	if g.json() {
		return g.std.json(r)
	}
	_, err := fmt.Fprintf(g.std.out, "%s  rev %d  position %d\n", short(r.Root, r.Path, r.Partition), r.Revision, r.Position)
	return err
}

// payload reads the value of a put. It is read whole before anything is sent, so that a broken
// pipe never writes half a value.
func (g *globals) payload(args []string) ([]byte, error) {
	in := g.std.in
	if len(args) == 1 && args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return nil, &exitError{code: exitNotFound, err: err}
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("read the value: %w", err)
	}
	if len(b) > maxBody {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("the value has more than %d bytes: %w", maxBody, statesman.ErrTooLarge),
			hint: "split it over several addresses"}
	}
	return b, nil
}

// maxBody is the most that a put reads. The agent's own limit may be lower, and decides.
const maxBody = statesman.DefaultMaxPayload

// sniff guesses a media type: JSON when it parses as such, else what net/http says of the bytes.
func sniff(b []byte) string {
	if jsonValid(b) {
		return api.JSONContentType
	}
	return http.DetectContentType(b)
}

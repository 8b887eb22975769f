// Command run tests the tests: it builds the suites with the tag "mutants" and runs them once for each
// seed of package mutant. A seed that no test notices has survived, and the command fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/statesman-dev/statesman/internal/mutant"
)

func main() {
	only := flag.String("only", "", "run this seed alone")
	jobs := flag.Int("jobs", 2, "suites at a time")
	flag.Parse()
	if err := run(*only, *jobs); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// verdict is what became of a seed.
type verdict struct {
	plan mutant.Plan
	by   string // the first test that failed; "" = the seed survived
	took time.Duration
	err  error
}

func run(only string, jobs int) error {
	plans, err := choose(only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	suites, err := build(dir, plans)
	if err != nil {
		return err
	}
	limits := make(map[string]time.Duration)
	for pkg, bin := range suites {
		v := try(bin, mutant.Plan{Package: pkg}, 10*time.Minute)
		if v.err != nil || v.by != "" {
			return fmt.Errorf("the tests of %s fail without any seed, by %s: mend them first: %w", pkg, v.by, v.err)
		}
		limits[pkg] = max(30*time.Second, 8*v.took) // a seed that makes a suite hang is noticed as well
	}
	verdicts := make([]verdict, len(plans))
	next := make(chan int)
	var wg sync.WaitGroup
	for range max(1, jobs) {
		wg.Go(func() {
			for i := range next {
				verdicts[i] = try(suites[plans[i].Package], plans[i], limits[plans[i].Package])
				show(verdicts[i])
			}
		})
	}
	for i := range plans {
		next <- i
	}
	close(next)
	wg.Wait()
	return sum(verdicts)
}

func choose(only string) ([]mutant.Plan, error) {
	if only == "" {
		return mutant.Plans(), nil
	}
	var names []string
	for _, p := range mutant.Plans() {
		if string(p.Seed) == only {
			return []mutant.Plan{p}, nil
		}
		names = append(names, string(p.Seed))
	}
	return nil, fmt.Errorf("no seed %q; there are %s", only, strings.Join(names, ", "))
}

// build makes a test binary for each package that is needed.
func build(dir string, plans []mutant.Plan) (map[string]string, error) {
	out := make(map[string]string)
	for _, p := range plans {
		if _, done := out[p.Package]; done {
			continue
		}
		bin := filepath.Join(dir, fmt.Sprintf("suite%d.test", len(out)))
		c := exec.Command("go", "test", "-c", "-tags", "mutants", "-o", bin, "./"+p.Package)
		if text, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build the suite of %s: %w\n%s", p.Package, err, text)
		}
		out[p.Package] = bin
	}
	return out, nil
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// try runs one suite with a seed.
func try(bin string, p mutant.Plan, limit time.Duration) verdict {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	begin := time.Now()
	c := exec.CommandContext(ctx, bin, "-test.failfast", "-test.skip", "^TestImport")
	c.Dir = filepath.FromSlash(p.Package) // tests expect to run where their files are
	c.Env = append(os.Environ(), "MUTANT="+string(p.Seed))
	text, err := c.CombinedOutput()
	v := verdict{plan: p, took: time.Since(begin)}
	_, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		v.by = "the time limit"
	case exited:
		v.by = "a crash of the suite"
		if m := failed.FindSubmatch(text); m != nil {
			v.by = string(m[1])
		}
	default:
		v.err = err
	}
	return v
}

func show(v verdict) {
	state := "killed by " + v.by
	switch {
	case v.err != nil:
		state = "NOT RUN: " + v.err.Error()
	case v.by == "":
		state = "SURVIVED"
	}
	fmt.Printf("%-22s %-8s %-66s %s (%.1fs)\n", v.plan.Seed, v.plan.Package, v.plan.What, state, v.took.Seconds())
}

// sum prints killed/total and fails unless all were.
func sum(verdicts []verdict) error {
	killed := 0
	var left []string
	for _, v := range verdicts {
		if v.err == nil && v.by != "" {
			killed++
		} else {
			left = append(left, string(v.plan.Seed))
		}
	}
	fmt.Printf("killed %d of %d\n", killed, len(verdicts))
	if len(left) > 0 {
		return fmt.Errorf("not killed: %s", strings.Join(left, ", "))
	}
	return nil
}

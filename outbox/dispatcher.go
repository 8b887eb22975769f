package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/statesman-dev/statesman"
)

// Dispatcher is one outbox. It is safe for concurrent use; its cycles never overlap.
//
// It does not own what it was given: after Stop returned nil, the program closes sink, serializer
// and store.
type Dispatcher struct {
	id       string
	o        Options // with defaults
	store    statesman.Store
	sink     Sink
	cursors  CursorStore
	identity statesman.Identity
	notifier statesman.Notifier // nil = poll

	st   tracker
	wake chan struct{} // capacity one: Resume shortens any wait

	// turn holds one token while a cycle runs. A channel and not a mutex, so that whoever waits
	// behind a sink that hangs can give up.
	turn chan struct{}
	// Of whoever has the turn:
	lease     holder
	page      page
	lineage   statesman.Lineage
	book      Bookmark      // as saved
	through   int64         // settled so far: ahead of book where only filtered records lie between, or where saving failed
	owed      bool          // deliveries lie between book and through, because saving waits its turn or failed
	savedAt   time.Time     // when the last save ended
	saveCost  time.Duration // how long it took
	tried     int64         // highest position whose saving failed since one succeeded: it may be saved all the same; 0 = none
	unsaved   error         // why the last save failed; nil = it did not
	unchecked bool          // the upstream's mark has to be compared before the next delivery
	delivered int64         // highest position that the sink accepted in this process; 0 = none
	attemptAt int64         // first position of the last delivery
	attempts  int           // deliveries that began there

	life     sync.Mutex // guards following
	running  bool
	closed   bool
	cancel   context.CancelFunc // ends the running Run
	finished chan struct{}      // closed when the running Run has returned
}

// New returns the outbox named id: the changes of store go to sink, and cursors remembers how far.
// nil opts are the defaults. Nothing is read or sent yet, and nothing needs to be reachable.
//
// Every fault of the arguments is named in one error that matches statesman.ErrInvalid. A store
// without Feed, Identity or, unless RunWithoutLease is set, Leaser is refused with an error that
// matches errors.ErrUnsupported.
func New(id string, store statesman.Store, sink Sink, cursors CursorStore, opts *Options) (*Dispatcher, error) {
	o := opts.withDefaults(store)
	faults := o.validate()
	if err := checkID(id); err != nil {
		faults = append(faults, err.Error())
	}
	if store == nil {
		faults = append(faults, "no store")
	}
	if sink == nil {
		faults = append(faults, "no sink")
	}
	if cursors == nil {
		faults = append(faults, "no cursor store")
	}
	if len(faults) > 0 {
		return nil, statesman.Invalid("outbox %q: %s", id, strings.Join(faults, "; "))
	}
	d := &Dispatcher{id: id, o: o, store: store, sink: sink, cursors: cursors, unchecked: true,
		wake: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
	if _, flat := statesman.As[statesman.FlatFeed](store); !flat {
		if _, err := statesman.Require[statesman.Feed](store); err != nil {
			return nil, fmt.Errorf("outbox %q: %w", id, err)
		}
	}
	var err error
	if d.identity, err = statesman.Require[statesman.Identity](store); err != nil {
		return nil, fmt.Errorf("outbox %q: %w", id, err)
	}
	leaser, err := statesman.Require[statesman.Leaser](store)
	if err != nil && !o.RunWithoutLease {
		return nil, fmt.Errorf("outbox %q: %w: set RunWithoutLease if no other process ships this store", id, err)
	}
	if err != nil {
		o.Logger.Warn("the outbox runs without a lease: a second one would ship everything twice", slog.String("outbox", id))
	} else {
		d.lease.leaser = leaser
	}
	d.lease.id = "statesman:" + o.StoreName + ":outbox:" + id
	d.lease.ttl, d.lease.now = o.LeaseTTL, o.Now
	d.notifier, _ = statesman.As[statesman.Notifier](store)
	d.st.init(id, o.Now)
	return d, nil
}

// ID returns the outbox's id.
func (d *Dispatcher) ID() string { return d.id }

// Resume ends a pause and any other wait: the next cycle begins at once. Call it when the
// configuration or credentials that the sink uses have changed.
func (d *Dispatcher) Resume() {
	d.st.hold("")
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Pause holds the outbox before its next delivery, until Resume or the end of the process. The
// lease is kept: a pause is meant for every replica. reason is told in Status.
func (d *Dispatcher) Pause(reason string) {
	if reason == "" {
		reason = "by an operator"
	}
	d.st.hold(reason)
	select { // so that the state is told at once
	case d.wake <- struct{}{}:
	default:
	}
}

// Reset puts the outbox at another place of its store's feed, whatever is saved now: the way out
// of a foreign or damaged cursor, and the way to ship everything again. It waits for the running
// delivery.
func (d *Dispatcher) Reset(ctx context.Context, to Start) error {
	if err := d.takeTurn(ctx); err != nil {
		return fmt.Errorf("reset outbox %q: %w", d.id, err)
	}
	defer d.yieldTurn()
	tail, err := d.identity.Tail(ctx)
	if err != nil {
		return fmt.Errorf("reset outbox %q: %w", d.id, err)
	}
	b, err := to.bookmark(tail)
	if err != nil {
		return fmt.Errorf("reset outbox %q: %w", d.id, err)
	}
	if err := d.rewind(ctx, b, "an operator put the outbox at "+to.String()); err != nil {
		return fmt.Errorf("reset outbox %q: %w", d.id, err)
	}
	d.Resume()
	return nil
}

func (d *Dispatcher) takeTurn(ctx context.Context) error {
	select {
	case d.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Dispatcher) yieldTurn() { <-d.turn }

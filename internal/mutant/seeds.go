package mutant

// Seed names one planted bug.
type Seed string

// The seeds. Each stands at the one place in the code where it would be made.
const (
	AckBeforeSync     Seed = "ack-before-sync"
	RetrySync         Seed = "retry-sync"
	SkipDirSync       Seed = "skip-dir-sync"
	SkipFileSync      Seed = "skip-file-sync"
	IgnoreShortWrite  Seed = "ignore-short-write"
	ForgetPoison      Seed = "forget-poison"
	CutDamage         Seed = "cut-damage"
	AppendAfterTorn   Seed = "append-after-torn"
	PartialGroup      Seed = "partial-group"
	CountUnchecked    Seed = "count-unchecked"
	FrameUnchecked    Seed = "frame-unchecked"
	CRCWithoutLength  Seed = "crc-without-length"
	CRCUnseeded       Seed = "crc-unseeded"
	LengthUnbounded   Seed = "length-unbounded"
	OldManifest       Seed = "old-manifest"
	ManifestUnchecked Seed = "manifest-unchecked"
	DropBothManifests Seed = "drop-both-manifests"
	CheckpointAnyLog  Seed = "checkpoint-of-any-log"
	CheckpointEarly   Seed = "checkpoint-unchecked"
	IndexUnchecked    Seed = "index-unchecked"
	ResurrectPruned   Seed = "resurrect-pruned"
	ServePruned       Seed = "serve-pruned"
	FeedPruned        Seed = "feed-pruned"
	FeedRepeats       Seed = "feed-repeats"
	FeedSkipsStrays   Seed = "feed-skips-strays"
	SilentDamage      Seed = "silent-damage"
	OldHeadInDoubt    Seed = "old-head-in-doubt"
	JudgeDurableHead  Seed = "judge-durable-head"
	TrustCommitHash   Seed = "trust-commit-hash"
	IgnoreCommitID    Seed = "ignore-commit-id"
	IgnoreLock        Seed = "ignore-lock"
	PruneHead         Seed = "prune-head"
	PruneUnshipped    Seed = "prune-unshipped"
	CursorFirst       Seed = "cursor-before-accept"
	CursorAnyLineage  Seed = "cursor-any-lineage"
	RetryIsAccepted   Seed = "retry-is-accepted"
	MarkIgnored       Seed = "mark-ignored"
	HotFirst          Seed = "hot-before-cold"
	HotForDamage      Seed = "hot-for-damage"
)

// Plan is a seed with the package whose tests must notice it.
type Plan struct {
	Seed    Seed
	Package string // below the module's root; "." is the root
	What    string // the mistake, in a few words
}

// Plans lists every seed.
func Plans() []Plan {
	return []Plan{
		{AckBeforeSync, "fsstore", "acknowledges before the sync"},
		{RetrySync, "fsstore", "syncs again after a sync that failed"},
		{SkipDirSync, "fsstore", "makes a segment without syncing the directory"},
		{SkipFileSync, "fsstore", "renames a new segment without syncing it"},
		{IgnoreShortWrite, "fsstore", "takes a short write for a whole one"},
		{ForgetPoison, "fsstore", "goes on writing after a failed sync"},
		{CutDamage, "fsstore", "cuts the log at damage in its middle"},
		{AppendAfterTorn, "fsstore", "appends behind a torn tail"},
		{PartialGroup, "fsstore", "takes the beginning of a group whose end is missing"},
		{CountUnchecked, "fsstore", "does not compare a group with its commit frame"},
		{FrameUnchecked, "fsstore", "does not check a frame's checksum"},
		{CRCWithoutLength, "fsstore", "leaves kind and length out of the checksum"},
		{CRCUnseeded, "fsstore", "takes the frames of another segment for its own"},
		{LengthUnbounded, "fsstore", "believes any length it reads"},
		{OldManifest, "fsstore", "takes the oldest manifest that verifies"},
		{ManifestUnchecked, "fsstore", "does not check a manifest's checksum"},
		{DropBothManifests, "fsstore", "keeps only the newest manifest"},
		{CheckpointAnyLog, "fsstore", "uses a checkpoint of other segments"},
		{CheckpointEarly, "fsstore", "does not check a checkpoint's checksum"},
		{IndexUnchecked, "fsstore", "does not check an index file's checksums"},
		{ResurrectPruned, "fsstore", "forgets prunes when it replays the log"},
		{ServePruned, "fsstore", "serves pruned revisions"},
		{FeedPruned, "fsstore", "yields pruned records"},
		{FeedRepeats, "fsstore", "begins the feed at the cursor instead of behind it"},
		{FeedSkipsStrays, "fsstore", "leaves records that were imported out of order out of the feed"},
		{SilentDamage, "fsstore", "passes damage in the feed without a word"},
		{OldHeadInDoubt, "fsstore", "serves an older revision when the newest may be damaged"},
		{JudgeDurableHead, "fsstore", "judges a condition by what is durable, not by what is queued"},
		{TrustCommitHash, "fsstore", "takes equal hashes for equal commit ids"},
		{IgnoreCommitID, "fsstore", "appends a repeated commit again"},
		{IgnoreLock, "fsstore", "opens a store that another process has open"},
		{PruneHead, ".", "prunes the newest revision"},
		{PruneUnshipped, ".", "prunes what no outbox has shipped"},
		{CursorFirst, "outbox", "saves the cursor before the sink has accepted"},
		{CursorAnyLineage, "outbox", "uses a cursor of another store"},
		{RetryIsAccepted, "outbox", "counts a record to be retried as accepted"},
		{MarkIgnored, "outbox", "does not notice that the upstream forgot"},
		{HotFirst, "tiered", "serves from the hot tier what the cold store has refused"},
		{HotForDamage, "tiered", "hides damage of the cold store behind the hot tier"},
	}
}

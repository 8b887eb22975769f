// Package abi is the contract between the host and a plugin, version 1: names, numbers and the
// two result frames. The host and the Go SDK both use it; it imports nothing of this module.
//
// # Module
//
// A plugin is a core WebAssembly module, a reactor: it exports memory and, when it has one,
// _initialize, which the host calls once after instantiation. All integers are little-endian.
//
//	export                  type              when
//	memory                  memory
//	statesman_abi_1         () → i32          its presence is the major version; returns the minor
//	statesman_buf           (i32 len) → i32   guest-owned input buffer of at least len bytes, aligned to 8, valid until the next call of it
//	statesman_init          (i32 len) → i64   after instantiation; input is the InitInput JSON
//	statesman_deliver       (i32 len, i32 timeout_ms) → i64   sinks; input is a batch (internal/wire)
//	statesman_serialize     (i32 len) → i64   serializers; input is a batch without bodies
//	statesman_describe      () → i64          the manifest JSON; only without a ManifestSection
//	statesman_tick          () → i32          optional idle turn; returns the milliseconds until the next
//	statesman_close         ()                optional, best effort, one second
//
// A packed result is ptr<<32 | len of bytes in the guest's memory, valid until the next call into
// it. 0 means that all went well and there is nothing to say. statesman_init answers 0 or an error
// frame (KindError); statesman_deliver answers 0 (all accepted), a verdict frame or an error
// frame; statesman_serialize answers a payload frame or an error frame.
//
// # Imports are capabilities
//
// The import section is the request; the host refuses before running a byte what is not granted.
//
//	statesman_v1       log(i32 level, i32 ptr, i32 len)                    level 0 debug 1 info 2 warn 3 error
//	                   verdict(i32 index, i32 code)                        early verdict on a record; survives a later trap
//	                   deadline_ms() → i64                                 milliseconds left in this call
//	                   counter(i32 ptr, i32 len, i64 delta)                adds to a named counter
//	statesman_net_v1   conn_open(i32 ptr, i32 len, i32 flags) → i32        target "host:port"; handle or -errno; connecting goes on behind
//	                   conn_read(i32 h, i32 ptr, i32 cap) → i32            bytes, 0 at the end, -EAGAIN, -errno
//	                   conn_write(i32 h, i32 ptr, i32 len) → i32           bytes taken, -EAGAIN, -errno
//	                   conn_close(i32 h) → i32
//	                   conn_error(i32 h, i32 ptr, i32 cap) → i32           text of the last error of h; length needed
//	                   poll(i64 seen, i64 timeout_us) → i64                waits until the event count differs from seen; returns it
//	statesman_fs_v1    open(i32 ptr, i32 len, i32 flags) → i32             "grant/rest/of/path"; handle or -errno; flags below
//	                   read(i32 h, i64 offset, i32 ptr, i32 cap) → i32
//	                   write(i32 h, i32 ptr, i32 len) → i32                appends
//	                   sync(i32 h) → i32
//	                   size(i32 h) → i64
//	                   truncate(i32 h, i64 size) → i32
//	                   close(i32 h) → i32
//	                   rename(i32 optr, i32 olen, i32 nptr, i32 nlen) → i32
//	                   remove(i32 ptr, i32 len) → i32
//	statesman_http_v1  reserved
//	statesman_kv_v1    reserved
//	statesman_rt_v1    yield; injected by the host's rewriter, refused in a module as it comes
//	wasi_snapshot_preview1  clock, random, stdout and stderr (to the log), no arguments, no environment, no files
//
// Rules: a guest passes pointers into its own memory, and the host checks every range; "buffer too
// small" is answered with the size needed; a negative number is -errno (see the E constants); no
// host function blocks but poll.
//
// # Result frames
//
// Verdict and error frame:
//
//	off size field
//	  0    1 kind           KindVerdicts | KindError
//	  1    1 class          of an error frame: ClassUnavailable | ClassOperator | ClassProtocol
//	  2    2 zero
//	  4    4 count          verdicts: records of the batch; error: 0
//	  8    4 retryAfterMs   0 = the host decides
//	 12    4 deduplicated   accepted records that upstream had already
//	 16    … verdicts: count × u8 code, padded to 4; then for each record with a reason: u32 index,
//	         u32 length, text, padded to 4. error: u32 length, text
//
// Payload frame:
//
//	off size field
//	  0    1 kind           KindPayloads
//	  1    3 zero
//	  4    4 count          records of the batch
//	  8    8 contentType    u32 offset, u32 length, from the start of the frame
//	 16    … count × {u8 code, u8[3] zero, u32 offset, u32 length}: the body, or for a code other than
//	         accepted the reason
//	  …    the bytes
package abi

// Version is the major version of this contract.
const Version = 1

// Exports of a plugin.
const (
	ExportMemory     = "memory"
	ExportInitialize = "_initialize"
	ExportABI        = "statesman_abi_1"
	ExportBuf        = "statesman_buf"
	ExportInit       = "statesman_init"
	ExportDeliver    = "statesman_deliver"
	ExportSerialize  = "statesman_serialize"
	ExportDescribe   = "statesman_describe"
	ExportTick       = "statesman_tick"
	ExportClose      = "statesman_close"
)

// Import modules, one per capability.
const (
	ModuleCore = "statesman_v1"
	ModuleNet  = "statesman_net_v1"
	ModuleFS   = "statesman_fs_v1"
	ModuleHTTP = "statesman_http_v1"
	ModuleKV   = "statesman_kv_v1"
	ModuleRT   = "statesman_rt_v1"
	ModuleWASI = "wasi_snapshot_preview1"
)

// ManifestSection is the custom section that holds the manifest JSON.
const ManifestSection = "statesman.manifest"

// Flags of fs open. Without OpenWrite a file is opened for reading and must exist.
const (
	OpenWrite  = 1 << 0
	OpenCreate = 1 << 1 // with OpenWrite; parents inside the grant are made
	OpenTrunc  = 1 << 2
)

// Log levels.
const (
	LevelDebug = iota
	LevelInfo
	LevelWarn
	LevelError
)

// Error numbers, the positive value; host functions return them negated.
const (
	EPERM    = 1   // not granted
	ENOENT   = 2   // no such file
	EIO      = 5   // anything else
	EBADF    = 9   // no such handle
	EAGAIN   = 11  // not now; poll and try again
	EFAULT   = 14  // a range outside the guest's memory
	EINVAL   = 22  // an argument that makes no sense
	EMFILE   = 24  // too many handles
	ENOSPC   = 28  // no space
	ECONN    = 111 // the connection could not be made or broke; conn_error has the text
	ETIMEOUT = 110 // the call's deadline passed
)

// Kind of a result frame.
const (
	KindVerdicts = 1
	KindError    = 2
	KindPayloads = 3
)

// Class of an error frame.
const (
	ClassUnavailable = 0 // try the whole batch again
	ClassOperator    = 1 // pause until a person mends it
	ClassProtocol    = 2 // a bug in the plugin; counted as a fault
)

// Code is a verdict on one record.
type Code uint8

// The verdicts.
const (
	Accepted Code = 0
	Rejected Code = 1
	Retry    Code = 2
)

// Manifest is what a plugin says of itself.
type Manifest struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Kind is "sink", "serializer" or "both".
	Kind string `json:"kind"`
	// Description is one sentence.
	Description string `json:"description,omitempty"`
	// Wants lists the grants that the plugin needs and why.
	Wants []Want `json:"wants,omitempty"`
	// Config is a JSON schema of the plugin's own settings.
	Config any `json:"config,omitempty"`
}

// Want is one grant that a plugin asks for.
type Want struct {
	Capability string `json:"capability"` // "net", "files", …
	Value      string `json:"value"`      // such as "tcp:host:port", or a grant's name for files
	Reason     string `json:"reason"`
}

// InitInput is the JSON that statesman_init gets.
type InitInput struct {
	Config any    `json:"config"` // the outbox's "with", as JSON
	Outbox string `json:"outbox"` // the outbox's id
	Store  string `json:"store"`  // the store's name
	Host   struct {
		Version string `json:"version"`
		Minor   int    `json:"minor"`
	} `json:"host"`
}

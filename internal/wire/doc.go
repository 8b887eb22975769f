// Package wire holds the one encoding of a record that is used from the disk to the plugin.
//
// # Flat record
//
// Little-endian, padded to a multiple of 8 bytes, read in place:
//
//	off size field
//	  0    4 size           bytes of the whole record, padding included
//	  4    2 fixedLen       bytes of this header: 112 in format 1
//	  6    2 flags          FlagPayload | FlagFreshUntil | FlagServeUntil
//	  8    8 revision       1, 2, 3 … per address
//	 16    8 position       1, 2, 3 … per store
//	 24    8 occurredAt     UTC nanoseconds since 1970
//	 32    8 freshUntil     the same; meaningful with FlagFreshUntil
//	 40    8 serveUntil     the same; meaningful with FlagServeUntil
//	 48    1 operation
//	 49    1 status
//	 50    2 formatVersion  of the envelope; 0 = the record has no envelope
//	 52    4 schemaVersion
//	 56   56 ends           14 × u32: end offset of each variable field
//	112    … the variable fields, one after the other, without padding between them
//
// Variable field i occupies [end(i-1), end(i)); field 0 begins at fixedLen. The order is root,
// path, partition, valueType, source, contentType, serializerId, fingerprint, correlationId,
// causationId, commitId, metadata, error, payload. An absent text is an empty one; only the
// payload tells absent from empty, by FlagPayload.
//
// Later formats put new fixed fields, and the ends of new variable fields, behind the old ones
// and raise fixedLen. A reader therefore takes the start of field 0 from the record's own
// fixedLen and never looks at what it does not know.
//
// metadata is u32 count, then count × (u32 length, key, u32 length, value), keys ascending by
// bytes. error is u8 transient, then code, message, exceptionType and detail, each u32 length
// and bytes.
//
// # Batch
//
// See [Batch]. The records inside are the bytes above, unchanged.
//
// # What it does not promise
//
// There is no checksum here: the store's frames carry them. [Parse] proves that every field lies
// inside the record, not that the text is UTF-8 or the numbers make sense; the root package's
// decoder does that.
package wire

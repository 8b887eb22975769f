package peer

import "encoding/binary"

// The layout that the ordered key-value stores share:
//
//	'F' position          → revision, address, payload   (the record, once)
//	'H' address 0 revision → position
//	'A' address           → revision, position           (only where no reverse seek is cheap)

func feedKey(pos uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, 9), 'F'), pos)
}

func historyKey(addr string, rev uint64) []byte {
	b := append(make([]byte, 0, len(addr)+10), 'H')
	return binary.BigEndian.AppendUint64(append(append(b, addr...), 0), rev)
}

func headKey(addr string) []byte {
	return append(append(make([]byte, 0, len(addr)+1), 'A'), addr...)
}

func headValue(rev, pos uint64) []byte {
	return binary.BigEndian.AppendUint64(number(rev), pos)
}

func splitHead(v []byte) (rev, pos uint64) {
	return binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:])
}

func number(n uint64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, 16), n)
}

// recordSize is the length of what appendRecord appends.
func recordSize(addr string, payload []byte) int { return 10 + len(addr) + len(payload) }

func appendRecord(b []byte, rev uint64, addr string, payload []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, rev)
	b = binary.BigEndian.AppendUint16(b, uint16(len(addr)))
	return append(append(b, addr...), payload...)
}

func newRecord(rev uint64, addr string, payload []byte) []byte {
	return appendRecord(make([]byte, 0, recordSize(addr, payload)), rev, addr, payload)
}

// splitRecord returns views of b.
func splitRecord(b []byte) (rev uint64, addr, payload []byte) {
	n := int(binary.BigEndian.Uint16(b[8:])) + 10
	return binary.BigEndian.Uint64(b), b[10:n], b[n:]
}

func recordEntry(pos uint64, b []byte) Entry {
	rev, addr, payload := splitRecord(b)
	return Entry{Pos: pos, Rev: rev, Addr: addr, Payload: payload}
}

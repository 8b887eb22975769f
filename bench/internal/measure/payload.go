//go:build linux

package measure

import (
	"bytes"
	"math/rand/v2"

	"github.com/statesman-dev/statesman/bench/internal/peer"
)

const (
	poolSize = 4096
	prefix   = `{"addr":"`
	between  = `","n":`
	digits   = 10
	// checkedSize is the smallest payload that carries its address, so that a drain can check it.
	checkedSize = 64
)

// payloads makes distinct JSON texts of words, which compress about as well as what people store.
type payloads struct {
	pool [][]byte
	size int
}

func newPayloads(size int) *payloads {
	r := rand.New(rand.NewPCG(7, 11))
	words := make([][]byte, 3000)
	for i := range words {
		w := make([]byte, 3+r.IntN(8))
		for j := range w {
			w[j] = "etaoinshrdlucmfwypvbgkjqxz"[int(26*r.Float64()*r.Float64())]
		}
		words[i] = w
	}
	p := &payloads{pool: make([][]byte, poolSize), size: size}
	for i := range p.pool {
		var b bytes.Buffer
		b.WriteString(prefix + peer.Addresses(1)[0].Key + between + `0000000000,"body":"`)
		for b.Len() < size {
			b.Write(words[r.IntN(len(words))])
			b.WriteByte(' ')
		}
		p.pool[i] = b.Bytes()[:size]
		if size >= checkedSize+2 {
			copy(p.pool[i][size-2:], `"}`)
		}
	}
	return p
}

// fill makes dst a payload of address a with the number n.
func (p *payloads) fill(dst []byte, r *rand.Rand, a peer.Address, n uint64) {
	copy(dst, p.pool[r.IntN(len(p.pool))])
	at := len(prefix) + len(a.Key) + len(between)
	if p.size < checkedSize {
		at = 0 // no room for a name
	} else {
		copy(dst[len(prefix):], a.Key)
	}
	for i := min(at+digits, p.size) - 1; i >= at; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
}

// belongs says whether a payload of that size names its address, as far as its size lets it.
func belongs(e peer.Entry, size int) bool {
	return len(e.Payload) == size && (size < checkedSize || bytes.HasPrefix(e.Payload[len(prefix):], e.Addr))
}

package meter

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// outcome runs a sample in a fresh instance, unmetered if yield is nil, and says all that can be seen
// of it.
func outcome(t testing.TB, s sample, yield func(*guest) error) (string, *guest) {
	t.Helper()
	g := newGuest(t, s.module, yield)
	var out bytes.Buffer
	for range 2 { // the second call starts with what the first one left
		results, err := g.call(s.export, s.args...)
		fmt.Fprint(&out, results, err != nil, " ")
	}
	if mem := g.mod.ExportedMemory("memory"); mem != nil {
		b, _ := mem.Read(0, mem.Size())
		fmt.Fprintf(&out, "%d %x", mem.Size(), bytes.TrimRight(b, "\x00"))
	}
	if v := g.mod.ExportedGlobal("g"); v != nil {
		fmt.Fprint(&out, " ", v.Get())
	}
	return out.String(), g
}

// most is the number of steps that a sample may take, so that none hangs the tests unmetered.
const most = 600_000

func TestMeteredEqualsUnmetered(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			m := s
			m.module = rewrite(t, s.module, nil)
			if _, g := outcome(t, m, upTo(most)); g.steps > most {
				t.Fatal("it does not end, and unmetered would hang the test")
			}
			want, _ := outcome(t, s, nil)
			for _, interval := range []int{1, 2, 7, 0} {
				m.module = rewrite(t, s.module, &Options{Interval: interval})
				got, g := outcome(t, m, forever)
				if got != want {
					t.Errorf("interval %d: got %s, want %s", interval, got, want)
				}
				if interval > 0 && g.steps < g.yields*interval {
					t.Errorf("interval %d: %d yields for %d steps", interval, g.yields, g.steps)
				}
			}
		})
	}
}

// program writes random functions of three i32 locals that end.
type program struct {
	rnd   *rand.Rand
	a     *asm
	funcs []int
	depth int // of blocks around, each of which may be left
}

func (p *program) statements(n int) []byte {
	var b []byte
	for range n {
		b = append(b, p.statement()...)
	}
	return b
}

func (p *program) inside(n int) []byte {
	p.depth++
	b := p.statements(n)
	p.depth--
	return b
}

func (p *program) statement() []byte {
	x, y := p.rnd.IntN(3), p.rnd.IntN(3)
	choice := p.rnd.IntN(12)
	if p.depth > 5 {
		choice = min(choice, 5)
	}
	switch choice {
	case 0, 1, 2:
		ops := []int{0x6a, 0x6b, 0x6c, 0x71, 0x72, 0x73, 0x77, 0x78, 0x49, 0x4a}
		return seq(get(x), get(y), i32(int(p.rnd.Int32N(1000))), 0x6a, ops[p.rnd.IntN(len(ops))], set(x))
	case 3:
		return seq(get(x), i32(0xfffc), 0x71, get(y), 0x36, 2, 0, get(y), i32(0xfffc), 0x71, 0x28, 2, 0, set(x))
	case 4:
		return seq(get(x), i32(0x7fff), 0x71, get(y), get(x), i32(0xff), 0x71, opPrefixMisc, miscMemoryFill, 0)
	case 5:
		if len(p.funcs) == 0 {
			return nil
		}
		return seq(get(x), get(y), call(p.funcs[p.rnd.IntN(len(p.funcs))]), set(y))
	case 6:
		return seq(opBlock, blockVoid, p.inside(3), get(x), i32(1), 0x71, 0x0d, p.rnd.IntN(p.depth+1), p.inside(2), opEnd)
	case 7:
		return seq(get(x), opIf, blockVoid, p.inside(2), opElse, p.inside(2), opEnd)
	case 8:
		targets := seq(num(2), p.rnd.IntN(p.depth+2), p.rnd.IntN(p.depth+2), p.rnd.IntN(p.depth+2))
		p.depth++
		b := seq(opBlock, blockVoid, p.inside(2), get(x), i32(3), 0x71, 0x0e, targets, opEnd, p.statements(1))
		p.depth--
		return seq(opBlock, blockVoid, b, opEnd)
	default: // a loop that counts its passes at its header, in a local that is its depth's own
		i := 3 + p.depth
		p.depth += 2
		b := p.statements(3)
		p.depth -= 2
		return seq(i32(0), set(i), opBlock, blockVoid, opLoop, blockVoid,
			get(i), i32(1), 0x6a, opLocalTee, i, i32(1+p.rnd.IntN(5)), 0x4a, 0x0d, 1,
			b, 0x0c, p.rnd.IntN(p.depth+2), opEnd, opEnd)
	}
}

// randomProgram always ends, but may take long.
func randomProgram(seed uint64) []byte {
	p := &program{rnd: rand.New(rand.NewPCG(seed, 1)), a: &asm{}}
	p.a.memories = [][]byte{seq(1, 1, 1)}
	p.a.export("memory", 2, 0)
	for range 1 + p.rnd.IntN(4) {
		p.funcs = append(p.funcs, p.a.fn("ii:i", "iiiiiiiiiiii", p.statements(4), get(0), get(1), 0x73))
	}
	p.a.run("run", "ii:i", "iiiiiiiiiiii", p.statements(8), get(0), get(1), 0x73, get(2), 0x6a)
	return p.a.bytes()
}

func TestRandomPrograms(t *testing.T) {
	ended := 0
	for seed := range uint64(50) {
		s := sample{module: randomProgram(seed), export: "run", args: []uint64{seed, 77}}
		m := s
		m.module = rewrite(t, s.module, &Options{Interval: 3})
		got, g := outcome(t, m, upTo(most))
		if g.steps > most {
			continue
		}
		ended++
		if want, _ := outcome(t, s, nil); got != want {
			t.Errorf("seed %d: got %.200s, want %.200s", seed, got, want)
		}
	}
	if ended < 40 {
		t.Errorf("only %d of the programs ended in time", ended)
	}
}

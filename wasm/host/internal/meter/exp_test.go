package meter
import ("testing";"time";"fmt")
func TestExp(t *testing.T){
  try := func(name string, a *asm) {
    b := a.bytes(); 
    s := time.Now()
    instantiate(t, b, forever)
    u := time.Since(s)
    out, _, err := Rewrite(b, nil); if err != nil { t.Log(name, err); return }
    s = time.Now()
    instantiate(t, out, forever)
    t.Log(name, len(b), len(out), "plain compile", u, "metered compile", time.Since(s))
  }
  for _, n := range []int{500, 1000, 2000} {
    a := &asm{}; a.fn(":", "", repeat(n, opBlock, blockVoid), repeat(n, opEnd)); try(fmt.Sprint("nested blocks ",n), a)
    a = &asm{}; a.fn(":", "", repeat(n, opLoop, blockVoid), repeat(n, opEnd)); try(fmt.Sprint("nested loops ",n), a)
    a = &asm{}; a.fn(":", "", repeat(n, opLoop, blockVoid, opEnd)); try(fmt.Sprint("loops in a row ",n), a)
    a = &asm{}; a.fn("i:", "", repeat(n, get(0), opIf, blockVoid, opEnd)); try(fmt.Sprint("ifs ",n), a)
    a = &asm{}; a.memories = [][]byte{seq(0,1)}; a.fn("i:", "", repeat(n, get(0), get(0), get(0), 0xfc,11,0)); try(fmt.Sprint("fills ",n), a)
  }
}

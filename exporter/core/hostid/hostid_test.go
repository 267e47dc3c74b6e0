package hostid

import "testing"

func TestTokensOfOneKernelAgreeForOneSaltOnly(t *testing.T) {
	a, b := Read(), Read()
	if a == (ID{}) {
		t.Skip("this system has no boot identifier")
	}
	if a.Token(7) != b.Token(7) || a.Token(7) == 0 {
		t.Errorf("%d and %d", a.Token(7), b.Token(7))
	}
	if a.Token(7) == a.Token(8) {
		t.Error("the token does not depend on the salt")
	}
}

func TestUnknownKernelHasNoToken(t *testing.T) {
	if got := (ID{}).Token(7); got != 0 {
		t.Error(got)
	}
	if (ID{boot: [32]byte{1}}).Token(7) == (ID{boot: [32]byte{2}}).Token(7) {
		t.Error("two kernels have one token")
	}
}

func TestTokenDoesNotAllocate(t *testing.T) {
	id := ID{boot: [32]byte{1}}
	if n := testing.AllocsPerRun(100, func() { id.Token(9) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

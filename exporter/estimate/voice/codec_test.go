package voice

import (
	"math"
	"strings"
	"testing"
	"time"
)

// The tables of Ie against random packet loss (percent: Ie) in the 1999 edition of G.113 Appendix I; the values of
// Bpl were fitted to them later.
func TestCodecsReproduceTheTabulatedImpairments(t *testing.T) {
	for name, table := range map[string]map[float64]float64{
		"G.711-PLC":  {0: 0, 1: 5, 2: 7, 3: 10, 5: 15, 7: 20, 10: 25, 15: 35, 20: 45},
		"G.729A-VAD": {0: 11, 0.5: 13, 1: 15, 1.5: 17, 2: 19, 3: 23, 4: 26, 8: 36, 16: 49},
		"G.723.1":    {0: 15, 0.5: 17, 1: 19, 1.5: 22, 2: 24, 3: 27, 4: 32, 8: 41, 16: 55},
		"GSM-EFR":    {0: 5, 1: 16, 2: 21, 3: 26, 5: 33},
	} {
		c, err := CodecByName(name)
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for loss, want := range table {
			p := Defaults().WithCodec(c)
			p.Ppl = loss
			off := G107(p).IeEff - want
			if math.Abs(off) > math.Abs(worst) {
				worst = off
			}
		}
		t.Logf("%s: at most %+.1f off", name, worst)
		if math.Abs(worst) > 3 {
			t.Errorf("%s: Ie,eff is %+.1f off the table", name, worst)
		}
	}
}

func TestCodecDelayIsFullPacketAndLookahead(t *testing.T) {
	for name, want := range map[string]time.Duration{
		"G.711":      20 * msec,
		"G.711-PLC":  23750 * time.Microsecond,
		"G.729":      25 * msec,
		"G.729A-VAD": 25 * msec,
		"G.723.1":    37500 * time.Microsecond,
		"GSM-EFR":    20 * msec,
	} {
		c, err := CodecByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Delay(); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestThesisCodecHasTheThesisValues(t *testing.T) {
	c, err := CodecByName("g.729")
	if err != nil || c.Ie != 10 || c.Bpl != 18 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestUnknownCodecErrorNamesTheKnownOnes(t *testing.T) {
	_, err := CodecByName("opus")
	if err == nil {
		t.Fatal("no error: Opus has no ITU value")
	}
	for _, c := range Codecs() {
		if !strings.Contains(err.Error(), c.Name) {
			t.Errorf("%q does not name %s", err, c.Name)
		}
	}
}

func TestCodecsAreACopy(t *testing.T) {
	Codecs()[0].Ie = 99
	if Codecs()[0].Ie == 99 {
		t.Error("a caller can change the table")
	}
}

func TestModelsAreFoundByName(t *testing.T) {
	for _, want := range Models() {
		got, err := ModelByName(want.Name)
		if err != nil || got.Rate(Defaults()) != want.Rate(Defaults()) {
			t.Errorf("%s: %v", want.Name, err)
		}
	}
	if _, err := ModelByName("pesq"); err == nil {
		t.Error("pesq was found")
	}
}

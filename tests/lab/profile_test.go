package lab

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"oneway.example/tests/bottleneck"
)

func TestProfileReadsEveryKey(t *testing.T) {
	const text = `
name: everything
forward:
  rate: 2.5Mbit
  delay: 30ms
  jitter: 250us
  queue: 110KB
  loss: 1%
  loss_burst: 2.5
  duplicate: 0.5%
  reorder: 2 %
  corrupt: 0.1%
  corrupt_checksum: keep
reverse:
  rate: unlimited
  loss: 0
`
	got, err := ParseProfile("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := Profile{
		Name: "everything",
		Forward: Link{
			Rate: 2_500_000, Delay: 30 * time.Millisecond, Jitter: 250 * time.Microsecond, Queue: 110_000,
			Loss: 0.01, LossBurst: 2.5, Duplicate: 0.005, Reorder: 0.02, Corrupt: 0.001, Checksum: KeepChecksum,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestProfileWithNothingButANameImpairsNothing(t *testing.T) {
	got, err := ParseProfile("p.yaml", []byte("name: plain\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Profile{Name: "plain"}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if q := got.Forward.queue(); q != DefaultQueue {
		t.Errorf("default queue %d, want %d", q, DefaultQueue)
	}
}

func TestProfileErrorsNamePlaceKeyAndRemedy(t *testing.T) {
	const head = "name: x\nforward:\n  "
	keys := strings.Join(linkKeys(), ", ")
	tests := []struct{ name, text, want string }{
		{"empty", "", "lab: p.yaml: empty, want name, forward and reverse"},
		{"no mapping", "- a\n", "lab: p.yaml:1: want a mapping with the keys name, forward, reverse"},
		{"no name", "forward:\n  rate: 1Mbit\n", "lab: p.yaml:1: name: missing, want a name for the profile"},
		{"name is a list", "name: [a]\n", "lab: p.yaml:1: name: want a single value"},
		{
			"unknown direction", "name: x\nuplink:\n  rate: 1Mbit\n",
			"lab: p.yaml:2: uplink: unknown key, want one of name, forward, reverse",
		},
		{
			"unknown key", head + "latency: 1ms\n",
			"lab: p.yaml:3: forward.latency: unknown key, want one of " + keys,
		},
		{"key twice", head + "delay: 1ms\n  delay: 2ms\n", "lab: p.yaml:4: forward.delay: given twice, first in line 3"},
		{
			"direction is a scalar", "name: x\nreverse: fast\n",
			"lab: p.yaml:2: reverse: want a mapping with the keys " + keys,
		},
		{"two documents", "name: x\n---\nname: y\n", "lab: p.yaml: more than one document, want one profile a file"},
		{"null", head + "rate:\n", "lab: p.yaml:3: forward.rate: want a single value"},
		{"alias", "name: &n x\nforward:\n  rate: *n\n", "lab: p.yaml:3: forward.rate: want a single value"},
		{
			"merge key", "name: x\nforward: &f\n  delay: 1ms\nreverse:\n  <<: *f\n",
			"lab: p.yaml:5: reverse.<<: unknown key, want one of " + keys,
		},

		{
			"rate without unit", head + "rate: 2500000\n",
			`lab: p.yaml:3: forward.rate: "2500000" is not a rate, want a number above 0 and bit, kbit, Mbit or Gbit (per second), such as 2.5Mbit, or unlimited`,
		},
		{
			"rate in bytes", head + "rate: 2MB/s\n",
			`lab: p.yaml:3: forward.rate: "2MB/s" is not a rate, want a number above 0 and bit, kbit, Mbit or Gbit (per second), such as 2.5Mbit, or unlimited`,
		},
		{
			"rate zero", head + "rate: 0Mbit\n",
			`lab: p.yaml:3: forward.rate: "0Mbit" is not a rate, want a number above 0 and bit, kbit, Mbit or Gbit (per second), such as 2.5Mbit, or unlimited`,
		},
		{
			"delay without unit", head + "delay: 30\n",
			`lab: p.yaml:3: forward.delay: "30" is not a duration, want a number and us, ms or s, such as 30ms`,
		},
		{
			"delay negative", head + "delay: -30ms\n",
			`lab: p.yaml:3: forward.delay: "-30ms" is not a duration, want a number and us, ms or s, such as 30ms`,
		},
		{
			"delay of two units", head + "delay: 1s30ms\n",
			`lab: p.yaml:3: forward.delay: "1s30ms" is not a duration, want a number and us, ms or s, such as 30ms`,
		},
		{"delay of an hour", head + "delay: 3600s\n", "lab: p.yaml:3: forward.delay: 1h0m0s is out of range, want 0 to 10m0s"},
		{
			"jitter exponent", head + "jitter: 1e3ms\n",
			`lab: p.yaml:3: forward.jitter: "1e3ms" is not a duration, want a number and us, ms or s, such as 30ms`,
		},
		{
			"queue in bits", head + "queue: 110kb\n",
			`lab: p.yaml:3: forward.queue: "110kb" is not a size, want a number and B, KB (1000 bytes), MB, KiB (1024 bytes) or MiB, such as 110KB`,
		},
		{
			"queue below a packet", head + "queue: 1KB\n",
			"lab: p.yaml:3: forward.queue: 1000 bytes hold not even one packet, want at least 1500B",
		},
		{
			"queue zero", head + "queue: 0\n",
			"lab: p.yaml:3: forward.queue: 0 bytes hold not even one packet, want at least 1500B",
		},
		{
			"loss as a fraction", head + "loss: 0.01\n",
			`lab: p.yaml:3: forward.loss: "0.01" is not a percentage, want 0% to 100%, such as 1.5%`,
		},
		{
			"loss above all", head + "loss: 101%\n",
			`lab: p.yaml:3: forward.loss: "101%" is not a percentage, want 0% to 100%, such as 1.5%`,
		},
		{
			"duplicate in words", head + "duplicate: some\n",
			`lab: p.yaml:3: forward.duplicate: "some" is not a percentage, want 0% to 100%, such as 1.5%`,
		},
		{
			"burst in words", head + "loss_burst: many\n",
			`lab: p.yaml:3: forward.loss_burst: "many" is not a number of packets, such as 3`,
		},
		{
			"burst below one", head + "loss: 1%\n  loss_burst: 0.5\n",
			"lab: p.yaml:4: forward.loss_burst: 0.5 is out of range, want a mean run of 1 to 1000000 packets",
		},
		{
			"burst too short for the loss", head + "loss: 80%\n  loss_burst: 2\n",
			"lab: p.yaml:4: forward.loss_burst: runs of 2 cannot lose 80 % of the packets, want at least 4",
		},
		{
			"checksum mode", head + "corrupt_checksum: fix\n",
			`lab: p.yaml:3: forward.corrupt_checksum: "fix" is not known, want repair or keep`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseProfile("p.yaml", []byte(tt.text))
			if err == nil {
				t.Fatal("accepted")
			}
			if err.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
		})
	}
}

func TestUnitsAreAccepted(t *testing.T) {
	rates := map[string]int64{
		"1bit": 1, "153kbit": 153_000, "2.5Mbit": 2_500_000, "1Gbit": 1e9, "2.5 Mbit/s": 2_500_000,
		"256kb/s": 256_000, "10Mbps": 1e7, "unlimited": 0,
	}
	for text, want := range rates {
		if got, err := parseRate(text); err != nil || got != want {
			t.Errorf("rate %q: got %d, %v; want %d", text, got, err, want)
		}
	}
	durations := map[string]time.Duration{
		"500ns": 500, "30us": 30 * time.Microsecond, "30\u00b5s": 30 * time.Microsecond,
		"0.5ms": 500 * time.Microsecond, "34s": 34 * time.Second, "0": 0,
	}
	for text, want := range durations {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("duration %q: got %v, %v; want %v", text, got, err, want)
		}
	}
	sizes := map[string]int{"1500B": 1500, "110KB": 110_000, "110kB": 110_000, "1.1MB": 1_100_000, "64KiB": 65_536, "1MiB": 1 << 20}
	for text, want := range sizes {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("size %q: got %d, %v; want %d", text, got, err, want)
		}
	}
	shares := map[string]float64{"0%": 0, "7%": 0.07, "0.1%": 0.001, "100%": 1}
	for text, want := range shares {
		if got, err := parsePercentage(text); err != nil || got != want {
			t.Errorf("share %q: got %v, %v; want %v", text, got, err, want)
		}
	}
}

// TestBottlenecksOfEveryKindAreParsed: and a trace is looked for beside its profile.
func TestBottlenecksOfEveryKindAreParsed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "link.up"), []byte("0\n3\n3\n9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const ms = time.Millisecond
	for text, want := range map[string]Link{
		"{trace: link.up, queue_packets: 30}":                        {Trace: []uint32{0, 3, 3, 9}, QueuePackets: 30},
		"{rate: 1Mbit, slot: 10ms, queue_time: 300ms}":               {Rate: 1e6, Slot: 10 * ms, QueueTime: 300 * ms},
		"{rate: 1Mbit, bucket: 20KB, peak: 10Mbit, police: true}":    {Rate: 1e6, Bucket: 20_000, Peak: 10e6, Police: true},
		"{rate: 1Mbit, discipline: fq_codel, others: 100kbit}":       {Rate: 1e6, Discipline: bottleneck.FQCoDel, Others: 1e5},
		"{rate: 1Mbit, second_rate: 900kbit, second_queue: 10KB}":    {Rate: 1e6, SecondRate: 9e5, SecondQueue: 10_000},
		"{retransmit: 5%, retransmit_delay: 8ms}":                    {Retransmit: 0.05, RetransmitDelay: 8 * ms},
		"{grow: 20ms, grow_after: 5s, outage: 1s, outage_after: 9s}": {Grow: 20 * ms, GrowAfter: 5 * time.Second, Outage: time.Second, OutageAfter: 9 * time.Second},
	} {
		p, err := ParseProfile(filepath.Join(dir, "p.yaml"), []byte("name: x\nforward: "+text+"\n"))
		if diff := cmp.Diff(want, p.Forward); err != nil || diff != "" {
			t.Errorf("%s: %v, -want +got:\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		"{trace: none}":                          "none: no such file",
		"{trace: 'cellular(5, 3)'}":              `"5" is not a rate`,
		"{trace: 'cellular(5Mbit)'}":             "is no made trace",
		"{trace: 'cellular(5Gbit, 1)'}":          "up to 200Mbit",
		"{rate: 1Mbit, trace: link.up}":          "want one of both",
		"{slot: 10ms}":                           "need a rate",
		"{rate: 1Mbit, police: maybe}":           "true or false",
		"{rate: 1Mbit, police: true}":            "without a bucket",
		"{rate: 1Mbit, queue_packets: 0}":        "number of packets",
		"{rate: 1Mbit, discipline: best}":        "want one of tail_drop",
		"{rate: 1Mbit, discipline: pie}":         "forward.discipline",
		"{retransmit: 1, retransmit_delay: 8ms}": "not a percentage",
	} {
		_, err := ParseProfile(filepath.Join(dir, "p.yaml"), []byte("name: x\nforward: "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "p.yaml:2") {
			t.Errorf("%s: %v, want %q and the place", text, err, want)
		}
	}
}

func TestBuiltInProfilesLoad(t *testing.T) {
	want := []string{
		"cellular", "changing-path", "codel", "evdo", "lan",
		"packet-limit", "red", "retransmission", "shared", "slots",
		"token-bucket", "two-queues", "wibro-tcp", "wibro", "wifi", "wimax-calgary",
	}
	if diff := cmp.Diff(want, ProfileNames()); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	for _, name := range want {
		p, err := LoadProfile(name)
		if err != nil {
			t.Error(err)
		}
		if p.Name != name {
			t.Errorf("profile %s calls itself %q", name, p.Name)
		}
	}
}

func TestLoadProfileReadsFilesAndNamesChoices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte("name: mine\nforward:\n  delay: 5ms\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := LoadProfile(path)
	if err != nil || p.Forward.Delay != 5*time.Millisecond {
		t.Errorf("got %+v, %v", p, err)
	}
	_, err = LoadProfile("umts")
	want := `lab: no profile "umts", want one of ` + strings.Join(ProfileNames(), ", ") + ` or the path of a .yaml file`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func FuzzParseProfile(f *testing.F) {
	for _, name := range ProfileNames() {
		text, err := profileFiles.ReadFile("profiles/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("name: x\nforward: {rate: 1e309Mbit, <<: *a}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParseProfile("fuzz.yaml", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "lab: fuzz.yaml") {
				t.Errorf("message does not name the file: %v", err)
			}
			return
		}
		if err := p.check(); err != nil {
			t.Errorf("accepted what New refuses: %v", err)
		}
	})
}

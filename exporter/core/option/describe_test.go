package option

import (
	"strings"
	"testing"
	"time"
)

// settings are options of a test.
type settings struct {
	Interval time.Duration `yaml:"interval"`
	Limit    Bytes         `yaml:"limit"`
	Size     int           `yaml:"packet_bytes"`
	Mode     string        `yaml:"mode"`
	Sizes    []int         `yaml:"sizes"`
	Name     string        `yaml:"name"`
	Inner    struct {
		Step *time.Duration `yaml:"step"`
	} `yaml:"inner"`
	Extra int `yaml:"extra"`
}

func (s *settings) Describe() []Description {
	return []Description{
		Number(&s.Interval, time.Second, 100*time.Microsecond, time.Hour, "Time between packets; see {inner.step}."),
		Number(&s.Limit, 0, 64<<10, 2_000_000_000, "A limit.").Unset("none"),
		Number(&s.Size, 100, 60, 9000, "A size."),
		Word(&s.Mode, "fixed", []string{"fixed", "sweep"}, "A mode."),
		Numbers(&s.Sizes, []int{1, 2}, 1, 9, "Sizes.").Count(1, 3).In("packets/s"),
		Text(&s.Name, "A name.").Required("every %s needs one", Key("mode")),
		Optional(&s.Inner.Step, 0, time.Second, "A step."),
	}
}

func TestDescriptionsAreDefaultsChecksAndTexts(t *testing.T) {
	s := Defaults[settings]()
	s.Name = "a"
	if err := Check(&s); err != nil || s.Interval != time.Second || s.Size != 100 || s.Mode != "fixed" || len(s.Sizes) != 2 || s.Inner.Step != nil {
		t.Errorf("%+v: %v", s, err)
	}
	s.Sizes[0] = 3
	if other := Defaults[settings](); other.Sizes[0] != 1 {
		t.Error("two structs share the default of a list")
	}
	if got := Undescribed(&s); len(got) != 1 || got[0] != "extra" {
		t.Errorf("undescribed: %q", got)
	}
	var texts []string
	for _, d := range All(&s) {
		texts = append(texts, d.Key+"="+d.Shown()+" "+d.Range())
	}
	const want = "interval=1s 100us to 1h,limit=0 64KiB to 2GB,packet_bytes=100 60 to 9000 bytes,mode=fixed ,sizes=[1, 2] 1 to 9 packets/s,name= ,inner.step= 0s to 1s"
	if got := strings.Join(texts, ","); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := All(&s)[0].Doc(strings.ToUpper); got != "Time between packets; see INNER.STEP." {
		t.Error(got)
	}
}

func TestWrongValuesAreRefusedByTheirDescriptions(t *testing.T) {
	long := 2 * time.Second
	for want, change := range map[string]func(*settings){
		"interval is 0s; it must be between 100µs and 1h0m0s":  func(s *settings) { s.Interval = 0 },
		"limit is 1; it must be between 65536 and 2000000000":  func(s *settings) { s.Limit = 1 },
		`mode is "x"; it must be fixed or sweep`:               func(s *settings) { s.Mode = "x" },
		"sizes has 0 values; it must have 1 to 3":              func(s *settings) { s.Sizes = nil },
		"sizes[1] is 1 for the second time":                    func(s *settings) { s.Sizes = []int{1, 1} },
		"name is missing; every mode needs one":                func(s *settings) { s.Name = "" },
		"inner.step is 2s; it must be between 0s and 1s":       func(s *settings) { s.Inner.Step = &long },
		"packet_bytes is 9001; it must be between 60 and 9000": func(s *settings) { s.Size = 9001 },
	} {
		s := Defaults[settings]()
		s.Name = "a"
		change(&s)
		if err := Check(&s); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestTextsAreThoseOfAConfiguration(t *testing.T) {
	for want, v := range map[string]any{
		"1h30m": 90 * time.Minute, "24h": 24 * time.Hour, "1m": time.Minute, "0s": time.Duration(0), "2m30s": 150 * time.Second,
		"128KiB": Bytes(128 << 10), "2GB": Bytes(2_000_000_000), "32TiB": Bytes(1 << 45), "0": Bytes(0), "1410": Bytes(1410), "100kB": Bytes(100_000),
		"5Mbit": Rate(5e6 / 8), "[1kB, 2]": []Bytes{1000, 2}, "1e-06": Ratio(1e-6), "true": true, "": nil,
	} {
		if got := String(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

package main

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/alecthomas/kingpin/v2"
	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/document"
	"oneway.example/tests/documents"
)

// voiceDefaults are the flag values of kingpin.
func voiceDefaults() voiceFlags {
	return voiceFlags{codec: "G.711", model: "g107", delay: "0ms", loss: "0%", burst: "1"}
}

func runVoice(t *testing.T, f voiceFlags) string {
	t.Helper()
	var out strings.Builder
	if err := f.run(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestVoiceTableShowsEveryImpairmentAligned(t *testing.T) {
	f := voiceDefaults()
	f.delay, f.loss = "150ms", "1%"
	want := `call                                   G.711 over 150ms mouth to ear, 1.00 % loss, BurstR 1
model                                  g107
signal to noise                Ro       94.77
- level, sidetone, quantizing  Is        1.41
- talker echo                  Idte      2.81
- listener echo                Idle      0.84
- absolute delay               Idd       0.16
- codec and loss               Ie,eff   17.92
= rating                       R        71.61
opinion score                  MOS       3.67
users                                  some users dissatisfied
`
	if diff := cmp.Diff(want, runVoice(t, f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVoiceTableOfTheSimplifiedModelHasOneDelayTerm(t *testing.T) {
	f := voiceDefaults()
	f.codec, f.model, f.delay, f.loss = "g.729", "simplified", "277.3ms", "2%"
	want := `call                      G.729 over 277.3ms mouth to ear, 2.00 % loss, BurstR 1
model                     simplified
signal to noise   Ro       94.20
- delay           Id       17.66
- codec and loss  Ie,eff   18.50
= rating          R        58.04
opinion score     MOS       3.00
users                     nearly all users dissatisfied
`
	if diff := cmp.Diff(want, runVoice(t, f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVoiceNotesAClampedRating(t *testing.T) {
	f := voiceDefaults()
	f.loss, f.burst = "10%", "2"
	if out := runVoice(t, f); !strings.Contains(out, "outside the range of the model") {
		t.Errorf("no note in:\n%s", out)
	}
}

func TestVoiceJSONHasTheDocumentedKeys(t *testing.T) {
	f := voiceDefaults()
	f.json = true
	var got map[string]any
	text := runVoice(t, f)
	documents.Valid(t, document.Voice, []byte(text))
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	call, _ := got["settings"].(map[string]any)
	value := func(key string) any {
		if v, ok := call[key]; ok {
			return v
		}
		return got[key]
	}
	for key, want := range map[string]float64{
		"r_factor": 93.206208, "mos": 4.409406, "signal_to_noise_ratio_db": 94.768822, "simultaneous_impairment": 1.413568,
		"talker_echo_impairment": 0, "listener_echo_impairment": 0.149046, "absolute_delay_impairment": 0, "delay_impairment": 0.149046,
		"equipment_impairment": 0, "mouth_to_ear_delay_seconds": 0, "loss_ratio": 0, "loss_burst_ratio": 1, "talker_echo_loudness_rating_db": 65,
	} {
		if v, ok := value(key).(float64); !ok || math.Abs(v-want) > 1e-6 {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	for key, want := range map[string]any{
		"codec": "G.711", "model": "g107", "satisfaction": "very satisfied", "outside_model_range": false,
	} {
		if value(key) != want {
			t.Errorf("%s is %v, want %v", key, value(key), want)
		}
	}
}

func TestVoiceJSONOmitsValuesThatTheSimplifiedModelLacks(t *testing.T) {
	f := voiceDefaults()
	f.json, f.model = true, "simplified"
	out := runVoice(t, f)
	documents.Valid(t, document.Voice, []byte(out))
	for _, key := range []string{"simultaneous", "talker_echo", "listener_echo", "absolute_delay"} {
		if strings.Contains(out, key) {
			t.Errorf("%s is in:\n%s", key, out)
		}
	}
}

func TestVoiceErrorsStateTheExpectation(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*voiceFlags)
		want   string
	}{
		"codec":          {func(f *voiceFlags) { f.codec = "opus" }, "--codec: voice: unknown codec \"opus\"; it must be one of G.711, G.711-PLC, G.729, G.729A-VAD, G.723.1, GSM-EFR"},
		"model":          {func(f *voiceFlags) { f.model = "pesq" }, "--model: voice: unknown model \"pesq\"; it must be g107 or simplified"},
		"delay no unit":  {func(f *voiceFlags) { f.delay = "150" }, "--delay is \"150\"; it must be a duration with a unit between 0ms and 1m, such as 150ms"},
		"delay negative": {func(f *voiceFlags) { f.delay = "-1ms" }, "--delay is \"-1ms\"; it must be a duration with a unit between 0ms and 1m, such as 150ms"},
		"loss no sign":   {func(f *voiceFlags) { f.loss = "1" }, "--loss is \"1\"; it must be a percentage with its % sign between 0% and 100%, such as 1% or 0.5%"},
		"loss too much":  {func(f *voiceFlags) { f.loss = "101%" }, "--loss is \"101%\"; it must be a percentage with its % sign between 0% and 100%, such as 1% or 0.5%"},
		"loss NaN":       {func(f *voiceFlags) { f.loss = "NaN%" }, "--loss is \"NaN%\"; it must be a percentage with its % sign between 0% and 100%, such as 1% or 0.5%"},
		"burst":          {func(f *voiceFlags) { f.burst = "0.5" }, "--burst-ratio is \"0.5\"; it must be a number from 1 (random loss) to 1000"},
		"telr":           {func(f *voiceFlags) { f.telr = "70" }, "--telr is \"70\"; it must be a number of dB from 5 (loud echo) to 65 (none)"},
		"telr simple":    {func(f *voiceFlags) { f.telr, f.model = "60", "simplified" }, "--telr is \"60\", but model simplified has no echo; leave it out or use --model g107"},
	} {
		f := voiceDefaults()
		c.change(&f)
		var out strings.Builder
		err := f.run(&out)
		if _, usage := errors.AsType[usageError](err); !usage {
			t.Errorf("%s: %v is not a usage error", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, err.Error()); diff != "" || out.Len() > 0 {
			t.Errorf("%s: printed %q (-want +got):\n%s", name, out.String(), diff)
		}
	}
}

func TestVoiceCommandAcceptsItsFlags(t *testing.T) {
	app := kingpin.New("oneway", "")
	voiceCommand(app)
	if _, err := app.ParseContext([]string{
		"voice", "--codec", "G.729", "--delay", "150ms", "--loss", "1%", "--burst-ratio", "1.5",
		"--model", "g107", "--telr", "60", "--json",
	}); err != nil {
		t.Error(err)
	}
}

package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/voice"
)

const voiceHelp = `Compute R and MOS of a call from its delay and loss.

The command measures nothing; the model is ITU-T G.107.

Examples:
  oneway voice --codec G.711-PLC --delay 150ms --loss 1%
  oneway voice --codec G.729 --delay 277.3ms --loss 2% --model simplified
  oneway voice --delay 400ms --telr 45 --json`

// voiceFlags are text, so that each error can state the expectation.
type voiceFlags struct {
	codec, model, delay, loss, burst, telr string
	json                                   bool
}

// Limits of the talker echo loudness rating, in dB (ITU-T G.107 table 2).
const minTELR, maxTELR = 5, 65

// voiceCommand registers `oneway voice`.
func voiceCommand(app *kingpin.Application) {
	var f voiceFlags
	cmd := app.Command("voice", voiceHelp)
	cmd.Flag("codec", "Codec: "+strings.Join(codecNames(), ", ")+".").Default("G.711").HintOptions(codecNames()...).StringVar(&f.codec)
	cmd.Flag("delay", "Mouth-to-ear delay, codec and playout buffer included, such as 150ms.").Default("0ms").StringVar(&f.delay)
	cmd.Flag("loss", "Packet loss in percent, such as 1%.").Default("0%").StringVar(&f.loss)
	cmd.Flag("burst-ratio", "BurstR: 1 is random loss, above 1 bursty.").Default("1").StringVar(&f.burst)
	cmd.Flag("model", "g107 (the full E-model) or simplified (Woo 2010, section 7.1).").Default(voice.NameG107).HintOptions(voice.ModelNames()...).StringVar(&f.model)
	cmd.Flag("telr", fmt.Sprintf("Talker echo loudness rating in dB, %d (loud echo) to %d (none); g107 only. Default: %g.", minTELR, maxTELR, voice.Defaults().TELR)).StringVar(&f.telr)
	cmd.Flag("json", "Print JSON.").BoolVar(&f.json)
	cmd.Action(action(func() error { return f.run(os.Stdout) }))
}

func codecNames() (names []string) {
	for _, c := range voice.Codecs() {
		names = append(names, c.Name)
	}
	return names
}

// voiceRating is the printed rating. Values that a model does not compute are nil and left out.
type voiceRating struct {
	Codec        string   `json:"-"`
	Model        string   `json:"-"`
	Delay        float64  `json:"-"`
	Loss         float64  `json:"-"`
	BurstR       float64  `json:"-"`
	TELR         *float64 `json:"-"`
	R            float64  `json:"r_factor"`
	MOS          float64  `json:"mos"`
	Satisfaction string   `json:"satisfaction"`
	Ro           float64  `json:"signal_to_noise_ratio_db"`
	Is           *float64 `json:"simultaneous_impairment,omitempty"`
	Idte         *float64 `json:"talker_echo_impairment,omitempty"`
	Idle         *float64 `json:"listener_echo_impairment,omitempty"`
	Idd          *float64 `json:"absolute_delay_impairment,omitempty"`
	Id           float64  `json:"delay_impairment"`
	IeEff        float64  `json:"equipment_impairment"`
	Clamped      bool     `json:"outside_model_range"`
}

// run rates and prints. An invalid flag is a usageError.
func (f *voiceFlags) run(out io.Writer) error {
	v, err := f.rate()
	switch {
	case err != nil && f.json:
		err = usageError{err}
		return printed(out, f.document(nil, err), err)
	case err != nil:
		return usageError{err}
	case f.json:
		return printed(out, f.document(&v, nil), nil)
	}
	return v.print(out)
}

func (f *voiceFlags) rate() (v voiceRating, err error) {
	codec, err := voice.CodecByName(f.codec)
	if err != nil {
		return v, fmt.Errorf("--codec: %w", err)
	}
	model, err := voice.ModelByName(f.model)
	if err != nil {
		return v, fmt.Errorf("--model: %w", err)
	}
	delay, err := time.ParseDuration(f.delay)
	if err != nil || delay < 0 || delay > time.Minute {
		return v, fmt.Errorf("--delay is %q; it must be a duration with a unit between 0ms and 1m, such as 150ms", f.delay)
	}
	percent, signed := strings.CutSuffix(f.loss, "%")
	loss, err := strconv.ParseFloat(percent, 64)
	if err != nil || !signed || !(loss >= 0 && loss <= 100) {
		return v, fmt.Errorf("--loss is %q; it must be a percentage with its %% sign between 0%% and 100%%, such as 1%% or 0.5%%", f.loss)
	}
	burst, err := strconv.ParseFloat(f.burst, 64)
	if err != nil || !(burst >= 1 && burst <= 1000) {
		return v, fmt.Errorf("--burst-ratio is %q; it must be a number from 1 (random loss) to 1000", f.burst)
	}
	p := voice.Defaults().WithCodec(codec).WithDelay(delay)
	p.Ppl, p.BurstR = loss, burst
	full := model.Name == voice.NameG107
	if f.telr != "" {
		p.TELR, err = strconv.ParseFloat(f.telr, 64)
		switch {
		case !full:
			return v, fmt.Errorf("--telr is %q, but model %s has no echo; leave it out or use --model g107", f.telr, model.Name)
		case err != nil || !(p.TELR >= minTELR && p.TELR <= maxTELR):
			return v, fmt.Errorf("--telr is %q; it must be a number of dB from %d (loud echo) to %d (none)", f.telr, minTELR, maxTELR)
		}
	}
	r := model.Rate(p)
	v = voiceRating{
		Codec: codec.Name, Model: model.Name, Delay: delay.Seconds(), Loss: loss / 100, BurstR: burst,
		R: r.R, MOS: r.MOS, Satisfaction: voice.Satisfaction(r.R), Ro: r.Ro, Id: r.Id, IeEff: r.IeEff, Clamped: r.Clamped,
	}
	if full {
		v.TELR, v.Is, v.Idte, v.Idle, v.Idd = &p.TELR, &r.Is, &r.Idte, &r.Idle, &r.Idd
	}
	return v, nil
}

// print writes a readable table: the input, the impairments and the rating.
func (v voiceRating) print(out io.Writer) error {
	t := newTable(out, "")
	t.margin = 0
	row := func(what, symbol string, value *float64) {
		if value != nil {
			t.row(what, symbol, fmt.Sprintf("%6.2f", *value))
		}
	}
	t.row("call", "", fmt.Sprintf("%s over %v mouth to ear, %s loss, BurstR %.4g",
		v.Codec, time.Duration(v.Delay*float64(time.Second)).Round(time.Microsecond), unit.Ratio.Format(v.Loss), v.BurstR))
	t.row("model", "", v.Model)
	row("signal to noise", "Ro", &v.Ro)
	row("- level, sidetone, quantizing", "Is", v.Is)
	row("- talker echo", "Idte", v.Idte)
	row("- listener echo", "Idle", v.Idle)
	row("- absolute delay", "Idd", v.Idd)
	if v.Idd == nil {
		row("- delay", "Id", &v.Id)
	}
	row("- codec and loss", "Ie,eff", &v.IeEff)
	row("= rating", "R", &v.R)
	row("opinion score", "MOS", &v.MOS)
	t.row("users", "", v.Satisfaction)
	if v.Clamped {
		t.row("note", "", "outside the range of the model: the rating is approximate")
	}
	t.lay()
	if err := t.flush(); err != nil {
		return fmt.Errorf("voice: print the rating: %w", err)
	}
	return nil
}

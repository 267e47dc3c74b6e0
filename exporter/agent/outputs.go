package agent

import (
	"log/slog"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/output"
)

// embedded is the name of the output of Options.Output, and its type in the status.
const embedded = "embedded"

// outputsSection configures the outputs.
type outputsSection struct {
	shared  *sharedSection
	outputs []plannedOutput // in the order of the configuration
}

// plannedOutput is an output and its task.
type plannedOutput struct {
	name, kind string
	*task
}

func (s *outputsSection) decode(c *config.Config) error {
	if found := config.CheckItems(c.Outputs, "output", "influxdb"); len(found) > 0 {
		return found
	}
	return nil
}

func (s *outputsSection) plan(c *config.Config, m *maker) (found config.Problems) {
	for i := range c.Outputs {
		o := &c.Outputs[i]
		if o.Type == "" {
			continue // reported by config
		}
		kind, err := typed(m.options.Types.Outputs, o.Type)
		if err != nil {
			found = append(found, o.Options.Problems(err)...)
			continue
		}
		if wrong := s.place(m, o.Options, o.Name, o.Type, o.Options.Fingerprint(), func(env output.Env) (output.Output, error) {
			return kind.New(env, o.Options.DecodeAll)
		}); len(wrong) > 0 {
			found = append(found, wrong.With(checkEach(o.Options, &o.Options, kind))...)
		}
	}
	if always := m.options.Output; always != nil {
		found = append(found, s.place(m, config.Section{}, embedded, embedded, "", func(env output.Env) (output.Output, error) {
			return always(env), nil
		})...)
	}
	return found
}

// place adds an output to the plan.
func (s *outputsSection) place(m *maker, at config.Section, name, kind, meaning string, construct func(output.Env) (output.Output, error)) config.Problems {
	log := m.log.With("component", "output", "output", name)
	env := output.Env{Name: name, Recorder: &m.recorder, Series: m.options.Series, StateDir: s.shared.stateDir}
	planned, wrong := m.place(at, &task{
		key: "outputs/" + name, what: "output " + name, log: log, identity: [...]string{kind, meaning, s.shared.stateDir},
		make: func(sink metric.Sink, scopes *metric.Scopes, log *slog.Logger) (runner, error) {
			env := env
			env.Log, env.Sink, env.Scopes = log, sink, scopes
			return construct(env)
		},
	})
	s.outputs = append(s.outputs, plannedOutput{name, kind, planned})
	return wrong
}

// OutputStatus is the status of an output.
type OutputStatus struct {
	Name string `json:"name"`
	Type string `json:"type"`
	output.Status
	// Error is why it does not run.
	Error string `json:"error,omitempty"`
}

func (s *outputsSection) show(into *Status) {
	for _, o := range s.outputs {
		into.Outputs = append(into.Outputs, OutputStatus{Name: o.name, Type: o.kind, Status: o.running().(output.Output).Status(), Error: o.fault()})
	}
}

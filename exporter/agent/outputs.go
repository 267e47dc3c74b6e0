package agent

import (
	"log/slog"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
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
		kind, err := option.Select("type", o.Type, m.options.Types.Outputs)
		if err != nil {
			found = append(found, o.Options.Problems(err)...)
			continue
		}
		t := s.task(m, o.Name, o.Type, o.Options.Fingerprint(), func(env output.Env) (output.Output, error) {
			return kind.New(env, o.Options.DecodeAll)
		})
		planned, wrong := m.placeTyped(o.Options, &o.Options, kind, t)
		s.outputs, found = append(s.outputs, plannedOutput{o.Name, o.Type, planned}), append(found, wrong...)
	}
	if always := m.options.Output; always != nil {
		planned, wrong := m.place(config.Section{}, s.task(m, embedded, embedded, "", func(env output.Env) (output.Output, error) {
			return always(env), nil
		}))
		s.outputs, found = append(s.outputs, plannedOutput{embedded, embedded, planned}), append(found, wrong...)
	}
	return found
}

// task is the task of an output.
func (s *outputsSection) task(m *maker, name, kind, meaning string, construct func(output.Env) (output.Output, error)) *task {
	env := output.Env{Name: name, Recorder: &m.recorder, Groups: m.groups, Tables: m.options.Types.Tables(), Labels: &m.pathTags, Series: m.options.Series, StateDir: s.shared.stateDir}
	return &task{
		key: "outputs/" + name, what: "output " + name, log: m.log.With("component", "output", "output", name),
		identity: [...]string{kind, meaning, s.shared.stateDir},
		make: func(sink metric.Sink, scopes *metric.Scopes, log *slog.Logger) (runner, error) {
			env := env
			env.Log, env.Sink, env.Scopes = log, sink, scopes
			return construct(env)
		},
	}
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

package logs

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/influxdata/telegraf"

	"oneway.example/exporter/core/errtext"
)

// Slog is a logger for the agent, whose records go to Telegraf's.
func Slog(to telegraf.Logger) *slog.Logger {
	h := &handler{to: to, shared: &shared{}}
	h.attributes = slog.NewTextHandler(&h.text, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: withoutHead})
	return slog.New(errtext.Handler{Handler: h})
}

// handler writes a record as "message: key=value key=value".
type handler struct {
	to telegraf.Logger
	*shared
	attributes slog.Handler // writes to shared.text
}

type shared struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// withoutHead removes the time, level and message, which the line has elsewhere.
func withoutHead(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
		return slog.Attr{}
	}
	return a
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	return h.to.Level().Includes(levelOf(level))
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	h.text.Reset()
	err := h.attributes.Handle(ctx, r)
	line := r.Message
	if more := strings.TrimSpace(h.text.String()); more != "" {
		line += ": " + more
	}
	h.mu.Unlock()
	switch levelOf(r.Level) {
	case telegraf.Error:
		h.to.Error(line)
	case telegraf.Warn:
		h.to.Warn(line)
	case telegraf.Info:
		h.to.Info(line)
	default:
		h.to.Debug(line)
	}
	return err
}

func levelOf(level slog.Level) telegraf.LogLevel {
	switch {
	case level >= slog.LevelError:
		return telegraf.Error
	case level >= slog.LevelWarn:
		return telegraf.Warn
	case level >= slog.LevelInfo:
		return telegraf.Info
	}
	return telegraf.Debug
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.to, h.shared, h.attributes.WithAttrs(attrs)}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.to, h.shared, h.attributes.WithGroup(name)}
}

package loadcontrol

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"oneway.example/exporter/core/strictjson"
)

// A session may have parts: several types of traffic that share its link, its quotas and its connection (package
// traffic/mixed). Parts are the parameters of its Open, and PartReplies the content of its Opened. The name of each message begins
// with that of its part: see PartMessage.
type (
	// Parts are names of types of traffic.
	Parts struct {
		Parts []string `json:"parts"`
	}
	// PartReplies are the replies of the parts, by name.
	PartReplies struct {
		Replies map[string]json.RawMessage `json:"replies"`
	}
)

// PartMessage returns the name of a part's message, such as "udp.start".
func PartMessage(part, name string) string { return part + "." + name }

// Part returns the part of a message, and its message.
func (s *TrafficMessage) Part() (part string, m *TrafficMessage) {
	part, name, _ := strings.Cut(s.Name, ".")
	return part, &TrafficMessage{Name: name, Body: s.Body}
}

// openedPart is what a Client of OpenParts has.
type openedPart struct {
	name    string
	reply   json.RawMessage
	deliver atomic.Pointer[func(*TrafficMessage, []byte) error] // nil: not open
}

func (p *openedPart) open(deliver func(*TrafficMessage, []byte) error) Opened {
	p.deliver.Store(&deliver)
	return Opened{Reply: p.reply}
}

// OpenParts opens a session with these parts and returns a client for each. Open of such a client sends nothing: it
// returns the part's reply, and its Open is not used. The part's messages go to its deliver. All share one connection.
func (c *Client) OpenParts(ctx context.Context, o Open, names ...string) ([]*Client, error) {
	clients, parts := make([]*Client, len(names)), map[string]*openedPart{}
	for i, name := range names {
		parts[name] = &openedPart{name: name}
		clients[i] = &Client{Conn: c.Conn, welcome: c.welcome, part: parts[name]}
	}
	o.Parameters, _ = json.Marshal(Parts{names}) // never fails: text
	opened, err := c.Open(ctx, o, func(m *TrafficMessage, data []byte) error {
		name, inner := m.Part()
		if p := parts[name]; p != nil {
			if deliver := p.deliver.Load(); deliver != nil {
				return (*deliver)(inner, data)
			}
		}
		return fmt.Errorf("%w: unexpected %.40q", ErrProtocol, m.Name)
	})
	if err != nil {
		return nil, err
	}
	var replies PartReplies
	if err := strictjson.Decode(opened.Reply, &replies); err != nil {
		return nil, c.Wrap(fmt.Errorf("reply to open: %w", err))
	}
	for name, p := range parts {
		if p.reply = replies.Replies[name]; p.reply == nil {
			return nil, c.Wrap(fmt.Errorf("reply to open has no part %s", name))
		}
	}
	return clients, nil
}

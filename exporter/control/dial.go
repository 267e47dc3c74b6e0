package control

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"oneway.example/exporter/hostport"
)

// DialTime is how long Dial takes at most, from the name to the Welcome.
const DialTime = 15 * time.Second

// maxHeaderBytes of an HTTP answer are read.
const maxHeaderBytes = 32 << 10

// ClientOptions say where a responder is, why it is to be trusted, and who asks. One of CAFile
// and Pin, or a certificate that this host trusts anyway, is needed; and one of Token and
// CertFile. Printed or logged, they do not show the token.
type ClientOptions struct {
	// Address is host:port; without a port, DefaultPort.
	Address string
	// Token goes into the Authorization header, and nowhere else. Empty: none.
	Token string `json:"-"`
	// CAFile has the authorities, in PEM, that sign the responder's certificate. Empty:
	// the host's own.
	CAFile string
	// Pin is the responder's key, "sha256:<hex>", as it logs it: see PinOf. It stands for
	// the authorities, the name and the date; with CAFile, both must agree.
	Pin string
	// CertFile and KeyFile are a client certificate, in PEM. Empty: none.
	CertFile, KeyFile string
	// ServerName is what the certificate must be for. Empty: the host of Address.
	ServerName string
	// Local is the address to dial from. The zero value: the kernel's choice.
	Local netip.Addr
	// Family is "ipv4", "ipv6" or "any", which is what empty means.
	Family string
}

// LogValue is the address alone.
func (o ClientOptions) LogValue() slog.Value { return slog.StringValue(o.Address) }

// Format prints the address alone, with every verb.
func (o ClientOptions) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, o.Address) }

// network is Family as package net calls it.
func (o *ClientOptions) network() (string, error) {
	switch o.Family {
	case "", "any":
		return "tcp", nil
	case "ipv4":
		return "tcp4", nil
	case "ipv6":
		return "tcp6", nil
	default:
		return "", fmt.Errorf("control: family %q: want any, ipv4 or ipv6", o.Family)
	}
}

// hostPort is the address with its port.
func (o *ClientOptions) hostPort() (host, port string, err error) {
	host, n, err := hostport.Split(o.Address, DefaultPort)
	if err != nil {
		return "", "", fmt.Errorf("control: address %q: %w", o.Address, err)
	}
	return host, strconv.Itoa(int(n)), nil
}

// checkToken tells whether the token can stand in a header (RFC 6750 section 2.1). The error
// does not show it.
func checkToken(token string) error {
	if len(token) > 4096 {
		return errors.New("control: token: longer than 4096 octets: is it a token?")
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c > '~' {
			return fmt.Errorf("control: token: octet %d of it is a blank or not ASCII: want letters, digits and signs only", i)
		}
	}
	return nil
}

// Dial connects to a responder and returns when it has said Welcome. It takes at most
// DialTime, or less if ctx ends. A refusal is found in the error by errors.As with *Refusal;
// every error names the address.
func Dial(ctx context.Context, o ClientOptions) (*Client, error) {
	host, port, err := o.hostPort()
	if err != nil {
		return nil, err
	}
	network, err := o.network()
	if err != nil {
		return nil, err
	}
	if err := checkToken(o.Token); err != nil {
		return nil, err
	}
	trust, err := clientTLS(&o, host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, DialTime, errNoAnswer)
	defer cancel()
	d := net.Dialer{KeepAlive: -1}
	if o.Local.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: o.Local.AsSlice(), Zone: o.Local.Zone()}
	}
	address := net.JoinHostPort(host, port)
	nc, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, explain(ctx, address, err)
	}
	if tcp, ok := nc.(*net.TCPConn); ok {
		Tune(tcp)
	}
	client, err := greet(ctx, nc, trust, &o, address)
	if err != nil {
		_ = nc.Close() // the error says more
		if to := nc.RemoteAddr().String(); to != address {
			address += " (" + to + ")"
		}
		return nil, explain(ctx, address, err)
	}
	return client, nil
}

// greet goes from a TCP connection to the Welcome.
func greet(ctx context.Context, nc net.Conn, trust *tls.Config, o *ClientOptions, address string) (*Client, error) {
	secure := tls.Client(nc, trust)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, &stepError{"TLS", err}
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	early, feedback, err := upgrade(secure, o, address)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	conn := newConn(secure, early, true)
	m, _, err := conn.Read(ctx)
	switch {
	case err != nil:
	case m.Welcome == nil:
		err = fmt.Errorf("%w: %s before welcome", ErrProtocol, m.name())
	case m.Welcome.Version != Version:
		err = &Refusal{Reason: WrongVersion, Detail: fmt.Sprintf("the responder speaks version %d, this client %d", m.Welcome.Version, Version)}
	default:
		client := newClient(conn, *m.Welcome)
		client.feedback = feedback
		return client, nil
	}
	conn.end(err)
	_ = conn.Close() // the error says more
	return nil, err
}

// upgrade asks for the session over HTTP/1.1. It returns the octets after the answer that are
// already read, and whether the responder knows plans with feedback.
func upgrade(nc net.Conn, o *ClientOptions, address string) (early []byte, feedback bool, err error) {
	request, err := http.NewRequest(http.MethodGet, "https://"+address+Path, http.NoBody)
	if err != nil {
		return nil, false, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", protocol)
	request.Header.Set("User-Agent", "oneway")
	if o.Token != "" {
		request.Header.Set("Authorization", "Bearer "+o.Token)
	}
	if err := request.Write(nc); err != nil {
		return nil, false, &stepError{"HTTP", err}
	}
	limited := &io.LimitedReader{R: nc, N: maxHeaderBytes}
	in := bufio.NewReader(limited)
	answer, err := http.ReadResponse(in, request)
	if err != nil {
		if limited.N <= 0 {
			err = fmt.Errorf("more than %d octets of headers", maxHeaderBytes)
		}
		return nil, false, &stepError{"HTTP", err}
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusSwitchingProtocols {
		limited.N = maxHeaderBytes
		return nil, false, refused(answer)
	}
	if answer.Header.Get("Upgrade") != protocol {
		return nil, false, &stepError{"HTTP", fmt.Errorf("it switched to the protocol %.40q, want %q", answer.Header.Get("Upgrade"), protocol)}
	}
	limited.N = math.MaxInt64
	early, err = in.Peek(in.Buffered())
	return early, tokens(answer.Header.Values(offers), offersFeedback), err
}

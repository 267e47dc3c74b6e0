package pages

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"oneway.example/exporter/probe/report"
	"oneway.example/tests/browser"
	"oneway.example/tests/lab"
	"oneway.example/tests/loadsite"
)

var remake = flag.Bool("pictures", false, "make the pictures of the README again, of an agent on the emulated WiBro link (root, one minute)")

// TestPictures writes the pictures of exporter/doc/pictures, if requested.
func TestPictures(t *testing.T) {
	if !*remake {
		return
	}
	profile, err := lab.LoadProfile("../lab/profiles/wibro.yaml")
	if err != nil {
		t.Fatal(err)
	}
	l := loadsite.New(t, binary, lab.Options{Profile: profile})
	l.Start(t, l.Network.Server, "reflect", "--clock=static", "--clock-bound=250us")
	s := &site{now: time.Now(), reports: report.Open(report.Options{Dir: filepath.Join(l.Dir, "state-"+l.Network.Client.Name, "reports")})}
	config := "reflector: {listen: [\":862\"]}\nload_server: {tokens_file: tokens}\nlinks: [{name: uplink, quota_bytes: 5GB}]\npaths:\n"
	for _, name := range []string{"bus-12-to-core", "bus-12-to-office"} {
		config += fmt.Sprintf("  - {name: %s, peer: %q, probes: [{type: stamp, interval: 100ms}, {type: stamp, name: voice, interval: 20ms, dscp: 46}]}\n", name, l.At.Addr())
	}
	config += "  - {name: bus-12-to-depot, peer: 10.77.0.2:9, probes: [{type: stamp, interval: 100ms, loss_timeout: 1s}]}\n"
	var ids []string
	for i, kind := range []string{"saturation", "train", "tcp", "tcp_short"} {
		options := ""
		if kind == "saturation" {
			options = ", rate: {forward: 3Mbit, reverse: 12Mbit}"
		}
		config += fmt.Sprintf("  - {name: %s-by-night, peer: %q, probes: [{type: %s, every: 24h, link: uplink, token_file: token, pin: %s%s}]}\n", kind, l.At.Addr(), kind, l.Pin, options)
		ids = append(ids, s.store(t, kind, kind+"-by-night", l.At.Addr().String(), time.Duration(i*31+12)*time.Minute, func(r *recording) { r.Header.Probe = kind }))
	}
	s.store(t, "incident", "bus-12-to-core", l.At.Addr().String(), 3*time.Hour, func(r *recording) { r.Header.Reason = "round trip delay of 920 ms, before 47 ms" })
	a := l.Agent(t, config)
	proxy := &httputil.ReverseProxy{Transport: a.HTTP.Transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: loadsite.AgentAddress})
		r.Out.Host = "bus-12.example.net:9862"
	}}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	time.Sleep(25 * time.Second) // the windows of the probes fill
	b := browser.New(t, limit)
	browser.Do(t, b, chromedp.EmulateViewport(1240, 1000))
	for name, path := range map[string]string{"status": "/", "run": "/runs/" + ids[0] + "/view"} {
		browser.Do(t, b, chromedp.Navigate(server.URL+path))
		if err := os.WriteFile("../../exporter/doc/pictures/"+name+".png", smaller(t, browser.Do(t, b, chromedp.CaptureScreenshot())), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// smaller encodes a picture with at most 256 colors: of each channel the first bits that give no more.
func smaller(t *testing.T, text []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for mask := uint8(0xfe); ; mask <<= 1 {
		seen, palette := map[color.RGBA]bool{}, color.Palette{}
		reduced := image.NewRGBA(full.Bounds())
		draw.Draw(reduced, full.Bounds(), full, full.Bounds().Min, draw.Src)
		for i := 0; i < len(reduced.Pix); i += 4 {
			c := color.RGBA{A: 255}
			for k, to := range []*uint8{&c.R, &c.G, &c.B} {
				*to = min(255, reduced.Pix[i+k]&mask|^mask/2)
				if reduced.Pix[i+k] == 255 {
					*to = 255
				}
				reduced.Pix[i+k] = *to
			}
			if !seen[c] {
				seen[c] = true
				palette = append(palette, c)
			}
		}
		if len(palette) > 256 {
			continue
		}
		small := image.NewPaletted(full.Bounds(), palette)
		draw.Draw(small, full.Bounds(), reduced, full.Bounds().Min, draw.Src)
		var b bytes.Buffer
		if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, small); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
}

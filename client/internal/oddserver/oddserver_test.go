package oddserver

import (
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
)

// A plain GET brings the file whatever the habit: what a habit spoils are ranges.
func TestAPlainGetBringsTheFile(t *testing.T) {
	content := make([]byte, 500_000)
	rand.NewChaCha8([32]byte{1}).Read(content)
	s := New(content)
	for _, protocol := range []string{HTTP2, HTTP1, Plain} {
		server, err := s.Start(protocol, "127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		for _, h := range Habits {
			response, err := server.Client().Get(server.URL + "/" + h.Name + "/file")
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil || !s.Is(h, got) || response.StatusCode/100 != 2 {
				t.Errorf("%s: %s, %d bytes, %v", h.Name, response.Status, len(got), err)
			}
		}
	}
}

// Each habit of ranges shows.
func TestHabitsShow(t *testing.T) {
	content := make([]byte, 500_000)
	server, err := New(content).Start(HTTP2, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for name, want := range map[string]struct {
		status       int
		contentRange string
		length       int
	}{
		"plain":            {206, "bytes 70000-499998/500000", 429_999},
		"size-unknown":     {206, "bytes 70000-499998/*", 429_999},
		"unit-case":        {206, "Bytes 70000-499998/500000", 429_999},
		"no-content-range": {206, "", 500_000},
		"earlier":          {206, "bytes 69000-499998/500000", 430_999},
		"shorter":          {206, "bytes 70000-369999/500000", 300_000},
		"blocks":           {206, "bytes 65536-499999/500000", 434_464},
		"403-later":        {403, "", 4},
	} {
		request, err := http.NewRequest(http.MethodGet, server.URL+"/"+name+"/file", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Range", "bytes=70000-499998")
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != want.status || response.Header.Get("Content-Range") != want.contentRange || len(got) != want.length {
			t.Errorf("%s: %s, Content-Range %q, %d bytes, %v", name, response.Status, response.Header.Get("Content-Range"), len(got), err)
		}
	}
}

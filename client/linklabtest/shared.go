package linklabtest

import (
	"os"
	"sync"
	"testing"
)

// A Shared is a lab for all tests of a package. It starts with the first test that asks for it.
type Shared struct {
	scenario  string
	how       []Option
	once      sync.Once
	lab       *Lab
	err       error
	directory string
}

// Share returns a lab that tests share, for a package's variable or its TestMain. The arguments are
// those of Start.
func Share(scenario string, how ...Option) *Shared {
	return &Shared{scenario: scenario, how: how}
}

// Lab returns the lab for a test, set back to the scenario's start (Lab.Restore). The tests that use it
// must not be parallel. The test fails or is skipped as by Start.
func (s *Shared) Lab(t testing.TB) *Lab {
	t.Helper()
	program, isFirst := located(t), false
	s.once.Do(func() {
		isFirst = true
		s.directory, s.err = os.MkdirTemp("", "linklabtest-*")
		if s.err == nil {
			s.lab, s.err = start(program, s.scenario, append([]Option{Out(s.directory)}, s.how...))
		}
	})
	if s.err != nil {
		t.Fatalf("linklabtest: %v", s.err)
	}
	lab := s.lab.of(t)
	if !isFirst {
		lab.Restore()
	}
	return lab
}

// Close ends the lab, if it has started, and removes its run directories unless Out names others. Call
// Close in TestMain after Run.
func (s *Shared) Close() {
	if s.lab != nil {
		s.lab.end()
	}
	if s.directory != "" {
		_ = os.RemoveAll(s.directory) // A leftover in the directory of temporary files fails no test.
	}
}

package transport

import (
	"net/http"
	"testing"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
)

func TestPartOfAnAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		code   int
		header http.Header
		want   ranges.Range
		size   quantity.Bytes
		fails  bool
	}{
		"part":                {206, http.Header{"Content-Range": {"bytes 2-4/9"}}, ranges.Range{Offset: 2, Length: 3}, 9, false},
		"of unknown size":     {206, http.Header{"Content-Range": {"bytes 2-4/*"}}, ranges.Range{Offset: 2, Length: 3}, -1, false},
		"without a range":     {206, http.Header{}, ranges.Range{}, 0, true},
		"beyond the end":      {206, http.Header{"Content-Range": {"bytes 2-9/9"}}, ranges.Range{}, 0, true},
		"whole":               {200, http.Header{"Content-Range": {"bytes 2-4/9"}}, ranges.Range{Length: 7}, 7, false},
		"identity":            {200, http.Header{"Content-Encoding": {"Identity"}}, ranges.Range{Length: 7}, 7, false},
		"encoded":             {200, http.Header{"Content-Encoding": {"gzip"}}, ranges.Range{}, 0, true},
		"part of an encoding": {206, http.Header{"Content-Encoding": {"gzip"}, "Content-Range": {"bytes 2-4/9"}}, ranges.Range{}, 0, true},
		"refusal":             {404, http.Header{"Content-Range": {"bytes 2-4/9"}}, ranges.Range{}, 0, true},
	} {
		got, size, err := Answer{Code: test.code, Header: test.header, Size: 7}.Part()
		if got != test.want || size != test.size || err != nil != test.fails {
			t.Errorf("%s: %v of %d, %v", name, got, size, err)
		}
	}
}

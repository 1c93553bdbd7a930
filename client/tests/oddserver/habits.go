package oddserver

import (
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"time"
)

const (
	// block is the alignment of ranges, and most the longest answer, of servers that have such.
	block = 64 << 10
	most  = 300_000
	// early is by how many bytes an answer begins too early.
	early = 1000
	// changeAfter is the number of requests after which the file changes.
	changeAfter = 4
)

// Habits are all habits of the server with GET.
var Habits = []Habit{
	{Name: "plain", Does: "serves ranges as a server should", serve: (*exchange).plain},

	// What Content-Range says.
	{Name: "size-unknown", Does: "says Content-Range: bytes FIRST-LAST/*", serve: overRanges(tellNoSize)},
	{Name: "size-unknown-no-head", Does: "says Content-Range: bytes FIRST-LAST/*, and refuses HEAD", serve: func(x *exchange) {
		if x.r.Method == http.MethodHead {
			x.refuse(http.StatusMethodNotAllowed)
			return
		}
		overRanges(tellNoSize)(x)
	}},
	{Name: "unit-case", Does: "says Content-Range: Bytes FIRST-LAST/SIZE", serve: overRanges(func(x *exchange, first, last int) {
		x.w.Header().Set("Content-Range", fmt.Sprintf("Bytes %d-%d/%d", first, last, len(x.content)))
		x.send(http.StatusPartialContent, first, last)
	})},
	{Name: "no-content-range", Does: "answers a range with 206 and the whole file, without Content-Range", serve: overRanges(func(x *exchange, _, _ int) {
		x.whole(http.StatusPartialContent)
	})},
	{Name: "206-always", Does: "answers all requests with 206 and the whole file, without Content-Range", serve: func(x *exchange) {
		x.whole(http.StatusPartialContent)
	}},
	{Name: "whole-in-206", Does: "answers a range with 206 and the whole file, and says so", serve: overRanges(func(x *exchange, _, _ int) {
		x.part(0, len(x.content)-1)
	})},
	{Name: "multipart", Does: "answers one range as multipart/byteranges", serve: overRanges(sendMultipart)},

	// Which bytes arrive.
	{Name: "earlier", Does: "begins earlier than asked for", serve: overRanges(func(x *exchange, first, last int) {
		x.part(max(0, first-early), last)
	})},
	{Name: "shorter", Does: "sends less than asked for", serve: overRanges(func(x *exchange, first, last int) {
		x.part(first, min(last, first+most-1))
	})},
	{Name: "blocks", Does: "sends whole blocks of 64 KiB", serve: overRanges(func(x *exchange, first, last int) {
		x.part(first/block*block, min(len(x.content), (last/block+1)*block)-1)
	})},

	// 200 for a range.
	{Name: "whole", Does: "serves no ranges, and says so", serve: func(x *exchange) {
		x.w.Header().Set("Accept-Ranges", "none")
		x.whole(http.StatusOK)
	}},
	{Name: "whole-unsaid", Does: "serves no ranges, and says nothing of it", serve: func(x *exchange) { x.whole(http.StatusOK) }},
	{Name: "whole-for-last", Does: "answers 200 where the last byte is asked for", serve: overRanges(func(x *exchange, first, last int) {
		if first > 0 && last == len(x.content)-1 {
			x.whole(http.StatusOK)
			return
		}
		x.part(first, last)
	})},
	{Name: "whole-for-if-range", Does: "answers 200 to If-Range", serve: func(x *exchange) {
		if x.r.Header.Get("If-Range") != "" {
			x.whole(http.StatusOK)
			return
		}
		x.plain()
	}},
	{Name: "whole-later", Does: "serves ranges at first, and then none", serve: func(x *exchange) {
		if x.asked > 2 {
			x.whole(http.StatusOK)
			return
		}
		x.plain()
	}},
	{Name: "no-length", Does: "serves no ranges and tells no length", serve: func(x *exchange) {
		x.validators()
		x.w.Header().Set("Accept-Ranges", "none")
		_ = http.NewResponseController(x.w).Flush()
		if x.r.Method != http.MethodHead {
			_, _ = x.w.Write(x.content)
		}
	}},

	// Refusals of ranges.
	{Name: "403-ranges", Does: "refuses ranges with 403", serve: refuseRanges(http.StatusForbidden)},
	{Name: "500-ranges", Does: "refuses ranges with 500", serve: refuseRanges(http.StatusInternalServerError)},
	{Name: "501-ranges", Does: "refuses ranges with 501", serve: refuseRanges(http.StatusNotImplemented)},
	{Name: "503-ranges", Does: "refuses ranges with 503", serve: refuseRanges(http.StatusServiceUnavailable)},
	{Name: "416-ranges", Does: "refuses ranges with 416", serve: refuseRanges(http.StatusRequestedRangeNotSatisfiable)},
	{Name: "403-ranges-no-head", Does: "refuses ranges and HEAD with 403", serve: func(x *exchange) {
		if x.r.Method == http.MethodHead || x.r.Header.Get("Range") != "" {
			x.refuse(http.StatusForbidden)
			return
		}
		x.plain()
	}},
	{Name: "403-later", Does: "refuses ranges with 403 that do not begin at 0", serve: refuseLater(http.StatusForbidden)},
	{Name: "500-later", Does: "refuses ranges with 500 that do not begin at 0", serve: refuseLater(http.StatusInternalServerError)},
	{Name: "416-later", Does: "refuses ranges with 416 that do not begin at 0", serve: refuseLater(http.StatusRequestedRangeNotSatisfiable)},
	{Name: "416-beyond-end", Does: "refuses ranges with 416 that go beyond the end", serve: func(x *exchange) {
		var first, last int
		if n, _ := fmt.Sscanf(x.r.Header.Get("Range"), "bytes=%d-%d", &first, &last); n == 2 && last >= len(x.content) {
			x.refuse(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		x.plain()
	}},

	// Validators.
	{Name: "weak-etag", Does: "gives a weak ETag and a date", serve: func(x *exchange) { x.etag = `W/"odd"`; x.plain() }},
	{Name: "no-validator", Does: "gives neither ETag nor date", serve: func(x *exchange) { x.etag, x.modified = "", time.Time{}; x.plain() }},
	{Name: "etag-by-address", Does: "has the same file with another ETag at each address", Varies: true, serve: func(x *exchange) {
		x.etag = fmt.Sprintf(`"%d"`, x.address())
		x.plain()
	}},
	{Name: "date-by-address", Does: "has the same file a second younger at each address, without ETag", Varies: true, serve: func(x *exchange) {
		x.etag, x.modified = "", x.modified.Add(time.Duration(x.address())*time.Second)
		x.plain()
	}},
	{Name: "etag-by-request", Does: "has the same file with one of two ETags in turn", Varies: true, serve: func(x *exchange) {
		x.etag = fmt.Sprintf(`"%d"`, x.asked%2)
		x.plain()
	}},
	{Name: "date-by-request", Does: "has the same file with one of two dates in turn, a second apart, without ETag", Varies: true, serve: func(x *exchange) {
		x.etag, x.modified = "", x.modified.Add(time.Duration(x.asked%2)*time.Second)
		x.plain()
	}},

	// Codings.
	{Name: "labelled", Does: "encodes the file as x-gzip in all answers, whatever is accepted", serve: func(x *exchange) {
		x.w.Header().Set("Content-Encoding", "x-gzip")
		x.plain()
	}},

	// Two files under one name.
	{Name: "file-by-address", Does: "has another file, of the same size, at each address", Differs: true, serve: func(x *exchange) { x.turn(x.address()%2 == 0) }},
	{Name: "file-by-request", Does: "has one of two files in turn, of the same size", Differs: true, serve: func(x *exchange) { x.turn(x.asked%2 == 0) }},
	{Name: "file-changes", Does: "has another file, of the same size, after a few requests", Differs: true, serve: func(x *exchange) { x.turn(x.asked > changeAfter) }},
}

func tellNoSize(x *exchange, first, last int) {
	x.w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/*", first, last))
	x.send(http.StatusPartialContent, first, last)
}

func refuseRanges(status int) func(*exchange) {
	return overRanges(func(x *exchange, _, _ int) { x.refuse(status) })
}

func refuseLater(status int) func(*exchange) {
	return overRanges(func(x *exchange, first, last int) {
		if first > 0 {
			x.refuse(status)
			return
		}
		x.part(first, last)
	})
}

// turn serves one of two files.
func (x *exchange) turn(other bool) {
	if other {
		x.content, x.etag = x.server.other(), `"other"`
	}
	x.plain()
}

// sendMultipart answers as for several ranges (RFC 9110 14.6).
func sendMultipart(x *exchange, first, last int) {
	x.validators()
	m := multipart.NewWriter(x.w)
	x.w.Header().Set("Content-Type", "multipart/byteranges; boundary="+m.Boundary())
	x.w.WriteHeader(http.StatusPartialContent)
	part, err := m.CreatePart(textproto.MIMEHeader{
		"Content-Type":  {"application/octet-stream"},
		"Content-Range": {fmt.Sprintf("bytes %d-%d/%d", first, last, len(x.content))},
	})
	if err == nil {
		_, _ = part.Write(x.content[first : last+1])
		m.Close()
	}
}

package module

// A shared zone's size bounds what it can hold, and what happens when it is full shows (refusals, log
// entries, forgotten keys). Slab counts room as nginx's allocator gives it, without the memory
// (src/core/ngx_slab.c, for pages of 4096 bytes).
type Slab struct {
	free    []slabRun // runs of free pages, the one to be tried first in front
	classes [slabMaxShift - slabMinShift + 1][]*slabPage
}

const (
	slabPageSize = 4096
	slabMinShift = 3
	slabMaxShift = 11
	slabHeader   = 200 // of the pool
	slabPerClass = 56  // list head and counters of a class
	slabPerPage  = 24  // what describes a page
)

type slabRun struct{ start, pages int }

type slabPage struct{ start, class, used, room int }

// SlabBlock is a piece that Alloc gave.
type SlabBlock struct {
	page *slabPage // of a class
	run  slabRun   // of whole pages
}

// NewSlab is the allocator of a zone of size bytes.
func NewSlab(size int64) *Slab {
	first := slabHeader + slabPerClass*(slabMaxShift-slabMinShift+1)
	pages := (int(size) - first) / (slabPageSize + slabPerPage)
	start := (first + pages*slabPerPage + slabPageSize - 1) &^ (slabPageSize - 1)
	pages = min(pages, (int(size)-start)/slabPageSize)
	return &Slab{free: []slabRun{{0, pages}}}
}

// Alloc takes size bytes; false when there is no room.
func (s *Slab) Alloc(size int) (SlabBlock, bool) {
	if size > 1<<slabMaxShift {
		run, ok := s.take((size + slabPageSize - 1) / slabPageSize)
		return SlabBlock{run: run}, ok
	}
	shift := slabMinShift
	for 1<<shift < size {
		shift++
	}
	class := shift - slabMinShift
	list := &s.classes[class]
	if len(*list) == 0 {
		run, ok := s.take(1)
		if !ok {
			return SlabBlock{}, false
		}
		*list = append(*list, &slabPage{start: run.start, class: class, room: slabRoom(shift)})
	}
	p := (*list)[0]
	if p.used++; p.used == p.room {
		*list = append((*list)[:0], (*list)[1:]...)
	}
	return SlabBlock{page: p}, true
}

// slabRoom is how many pieces a page of a class holds: small ones share it with their bitmap.
func slabRoom(shift int) int {
	n := slabPageSize >> shift
	if shift < 6 {
		n -= max(n/(8<<shift), 1)
	}
	return n
}

// Free gives a piece back.
func (s *Slab) Free(b SlabBlock) {
	p := b.page
	if p == nil {
		s.give(b.run)
		return
	}
	list := &s.classes[p.class]
	if p.used == p.room {
		*list = append([]*slabPage{p}, *list...)
	}
	if p.used--; p.used > 0 {
		return
	}
	for i, q := range *list {
		if q == p {
			*list = append((*list)[:i], (*list)[i+1:]...)
			break
		}
	}
	s.give(slabRun{p.start, 1})
}

func (s *Slab) take(pages int) (slabRun, bool) {
	for i := range s.free {
		r := &s.free[i]
		if r.pages < pages {
			continue
		}
		got := slabRun{r.start, pages}
		r.start += pages
		if r.pages -= pages; r.pages == 0 {
			s.free = append(s.free[:i], s.free[i+1:]...)
		}
		return got, true
	}
	return slabRun{}, false
}

// give joins a run with its free neighbours; the whole comes to the front.
func (s *Slab) give(r slabRun) {
	keep := s.free[:0]
	for _, f := range s.free {
		switch {
		case f.start == r.start+r.pages:
			r.pages += f.pages
		case f.start+f.pages == r.start:
			r.start, r.pages = f.start, r.pages+f.pages
		default:
			keep = append(keep, f)
		}
	}
	s.free = append([]slabRun{r}, keep...)
}

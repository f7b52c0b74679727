package module

// Merges of a level's value with the one above it and the default (ngx_conf_file.h, ngx_conf_merge_*).

// MergeInt is for numbers, flags and enums.
func MergeInt(conf *int, prev, def int) {
	if *conf == Unset {
		*conf = prev
		if prev == Unset {
			*conf = def
		}
	}
}

// MergeInt64 is for sizes, offsets and durations.
func MergeInt64(conf *int64, prev, def int64) {
	if *conf == Unset {
		*conf = prev
		if prev == Unset {
			*conf = def
		}
	}
}

// MergeStr is for words.
func MergeStr(conf *Str, prev Str, def string) {
	if !conf.Set {
		*conf = prev
		if !prev.Set {
			*conf = Str{Set: true, V: def}
		}
	}
}

// MergeBufs is for "number size"; Num 0 is unset.
func MergeBufs(conf *Bufs, prev Bufs, num int, size int64) {
	if conf.Num == 0 {
		*conf = prev
		if prev.Num == 0 {
			*conf = Bufs{Num: num, Size: size}
		}
	}
}

// MergeBits is for bitmasks; 0 is unset.
func MergeBits(conf *int, prev, def int) {
	if *conf == 0 {
		*conf = prev
		if prev == 0 {
			*conf = def
		}
	}
}

// MergePtr is for pointers; nil is unset.
func MergePtr[T any](conf **T, prev, def *T) {
	if *conf == nil {
		*conf = prev
		if prev == nil {
			*conf = def
		}
	}
}

// MergeSlice is for lists; nil is unset (an empty list that is not nil is a setting).
func MergeSlice[T any](conf *[]T, prev []T) {
	if *conf == nil {
		*conf = prev
	}
}

// InitInt gives a main configuration's number its default.
func InitInt(conf *int, def int) { MergeInt(conf, Unset, def) }

// InitInt64 gives a main configuration's size or duration its default.
func InitInt64(conf *int64, def int64) { MergeInt64(conf, Unset, def) }

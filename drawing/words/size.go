package words

import "fmt"

// Size formats a number of bytes, such as "1.5 MiB".
func Size(bytes int64) string {
	const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
	switch {
	case bytes >= gib:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/gib)
	case bytes < kib:
		return fmt.Sprintf("%d B", bytes)
	case bytes < mib/10:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/kib)
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/mib)
}

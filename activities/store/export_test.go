package store

// OpenShared opens a folder as on a network file system, whose files do not grow
// by whole appends.
func OpenShared(dir string) (*Store, error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	f.appends = false
	return newStore(f), nil
}

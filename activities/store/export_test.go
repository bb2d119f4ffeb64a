package store

// OpenShared opens a folder as if it were on a network file system, where concurrent appends may not be whole.
func OpenShared(dir string) (*Store, error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	f.appends = false
	return newStore(f), nil
}

package ev

// Loop is the event loop of one worker.
type Loop struct{}

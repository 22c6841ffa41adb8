import fc from 'fast-check'

/**
 * Property tests draw the same cases at every run, so that a commit passes or fails by what it changes.
 * `SVC_TEST_SEED=<integer>` draws others; a failure prints its seed and path.
 */
fc.configureGlobal({ seed: Number(process.env['SVC_TEST_SEED'] ?? 20_261_121) })

export default fc

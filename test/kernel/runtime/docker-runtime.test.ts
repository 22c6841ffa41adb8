import t from 'tap'
import { containerConformance } from './container-conformance.js'

t.setTimeout(120000) // on the file: an engine may be busy with other tests
t.test('conformance', t => containerConformance(t, 'docker'))

import t from 'tap'
import { containerConformance } from '../container-conformance.js'

t.setTimeout(300_000) // on the file: an engine may be busy with other tests
t.test('the Docker driver keeps the contract of drivers', t => containerConformance(t, 'docker'))

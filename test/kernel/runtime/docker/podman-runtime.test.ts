import t from 'tap'
import { containerConformance } from '../container-conformance.js'

t.setTimeout(600_000) // on the file: without overlays an engine copies the image for every container
t.test('the Podman driver keeps the contract of drivers', t => containerConformance(t, 'podman'))

import t from 'tap'
import { sliced } from '../plugins/services/memory-engine/killed/deletions.js'
import { form } from '../plugins/services/memory-engine/killed/form.js'
import { imports } from '../plugins/services/memory-engine/killed/imports.js'
import { operations } from '../plugins/services/memory-engine/killed/operations.js'
import { every, killed } from '../plugins/services/memory-engine/killed/series.js'
import { writes } from '../plugins/services/memory-engine/killed/writes.js'

t.setTimeout(1_800_000)

/** Of 1,500 steps that delete one row like the others; `SVC_TEST_KILL_STRIDE=1` has all of them. */
const STRIDE = Number(process.env.SVC_TEST_KILL_STRIDE ?? 7)

t.test('an engine is killed before every step of a write', t => killed(t, writes, every()))
t.test('an engine is killed before every step of an import, and of its undoing', t => killed(t, imports, every()))
t.test('an engine is killed before every step of the work in its background', t => killed(t, operations, every()))
t.test('an engine is killed before every step of the migration of its database', t => killed(t, form, every()))
t.test(`an engine is killed before every ${STRIDE}th step of deletions that go slice by slice`, t => killed(t, sliced, every(STRIDE)))

import t from 'tap'
import { openEngine } from './support.js'

t.test('directives are made, listed by weight, tags and state, changed and deleted', async t => {
  const { call } = openEngine(t)
  t.match(await call('GET', 'b/directives'), { status: 404, body: { detail: `Bank 'b' not found` } })
  await call('PUT', 'b', {})
  const { body: short } = await call('POST', 'b/directives', {
    name: 'be short', content: 'Always answer briefly', priority: 2, is_active: true
  })
  t.match(short, {
    bank_id: 'b', name: 'be short', content: 'Always answer briefly', priority: 2, is_active: true, tags: [],
    created_at: /\+00:00$/
  })
  await call('POST', 'b/directives', { name: 'late', content: 'x', tags: ['a'], is_active: false })
  const { body: weighty } = await call('POST', 'b/directives', { name: 'first', content: 'y', priority: 9, tags: ['a', 'b'] })
  const names = async (query: string): Promise<string[]> => (await call('GET', `b/directives${query}`)).body.items.map(
    ({ name }: { name: string }) => name
  )
  t.same(await names(''), ['first', 'be short'])
  t.same(await names('?active_only=false&limit=2&offset=1'), ['be short', 'late'])
  t.same(await names('?active_only=false&tags=a&tags=b&tags_match=exact'), ['first'])
  t.same(await names('?tags=b'), ['first', 'be short'], 'those without tags are for all')
  t.match((await call('PATCH', `b/directives/${short.id}`, { content: 'z', name: null })).body, {
    name: 'be short', content: 'z', priority: 2
  })
  t.match(await call('POST', 'b/directives', { content: 'x' }), {
    status: 422, body: { detail: [{ type: 'missing', loc: ['body', 'name'] }] }
  })
  t.match(await call('GET', 'b/directives?limit=1001'), { status: 422, body: { detail: [{ type: 'less_than_equal' }] } })
  t.same((await call('DELETE', `b/directives/${weighty.id}`)).body, { status: 'deleted' })
  t.match(await call('GET', `b/directives/${weighty.id}`), {
    status: 404, body: { detail: `Directive '${weighty.id}' not found` }
  })
  await call('PUT', 'c', {})
  for (const method of ['GET', 'DELETE']) t.match(
    await call(method, `c/directives/${short.id}`), { status: 404 }, 'another bank has none of them'
  )
})

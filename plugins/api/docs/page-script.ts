import { curlLine } from './curl-line.js'

/**
 * What runs in the browser: reads openapi.json from beside the page and builds the page from it. Text from the
 * document only ever becomes text nodes. Plain ES2017 without template literals, because it is kept as text.
 */
export const script = String.raw`
(function () {
  'use strict'
  ${curlLine.toString()}
  const DEEPEST = 6
  const operations = document.getElementById('operations')
  const groups = document.getElementById('groups')
  const search = document.getElementById('search')
  const notice = document.getElementById('notice')
  const nothing = document.getElementById('nothing')
  const base = location.href.replace(/[?#].*$/, '').replace(/\/api\/docs\/?$/, '')
  const listed = []

  function element (tag, attributes, children) {
    const node = document.createElement(tag)
    for (const name of Object.keys(attributes)) node.setAttribute(name, attributes[name])
    for (const child of children) if (child !== null && child !== '') node.append(child)
    return node
  }

  // inline Markdown as nodes: code, bold, links; blank lines part paragraphs and lines that begin with - are a list
  function inline (text) {
    const parts = []
    const pattern = /\x60([^\x60]+)\x60|\*\*([^*]+)\*\*|\[([^\]]+)\]\((https?:[^)\s]+)\)/g
    let from = 0
    for (const found of text.matchAll(pattern)) {
      parts.push(text.slice(from, found.index))
      if (found[1] !== undefined) parts.push(element('code', {}, [found[1]]))
      else if (found[2] !== undefined) parts.push(element('strong', {}, [found[2]]))
      else parts.push(element('a', { href: found[4], rel: 'noreferrer' }, [found[3]]))
      from = found.index + found[0].length
    }
    return parts.concat(text.slice(from))
  }

  function markdown (text) {
    return (text || '').split(/\n\s*\n/).filter(part => part !== '').map(part => {
      const lines = part.split('\n')
      if (!lines.every(line => /^\s*[-*] /.test(line))) return element('p', {}, inline(part))
      return element('ul', {}, lines.map(line => element('li', {}, inline(line.replace(/^\s*[-*] /, '')))))
    })
  }

  function typeText (schema) {
    const variants = schema.anyOf || schema.oneOf
    if (schema.$ref) return schema.$ref.split('/').pop()
    if (schema.const !== undefined) return JSON.stringify(schema.const)
    if (schema.enum) return schema.enum.map(value => JSON.stringify(value)).join(' | ')
    if (variants) return variants.map(typeText).join(' | ')
    if (Array.isArray(schema.type)) return schema.type.join(' | ')
    if (schema.type === 'array') return 'array of ' + typeText(schema.items || {})
    if (isMap(schema)) return 'map of ' + typeText(schema.additionalProperties)
    return schema.type || 'any'
  }

  function isMap (schema) {
    return !schema.properties && typeof schema.additionalProperties === 'object' && schema.additionalProperties !== null
  }

  function boundsText (schema) {
    const bounds = []
    if (Math.abs(schema.minimum) < Number.MAX_SAFE_INTEGER) bounds.push('at least ' + schema.minimum)
    if (Math.abs(schema.maximum) < Number.MAX_SAFE_INTEGER) bounds.push('at most ' + schema.maximum)
    if (schema.exclusiveMinimum !== undefined) bounds.push('more than ' + schema.exclusiveMinimum)
    if (schema.minLength > 0) bounds.push('at least ' + schema.minLength + ' characters')
    if (schema.pattern !== undefined) bounds.push('matches ' + schema.pattern)
    if (schema.default !== undefined) bounds.push('default ' + JSON.stringify(schema.default))
    return bounds.join(', ')
  }

  // the objects inside a schema whose fields are worth a list: through references, arrays, maps and variants
  function objectsIn (schema, defined) {
    if (schema.$ref) return objectsIn(defined[schema.$ref.split('/').pop()] || {}, defined)
    if (schema.properties) return [schema]
    if (schema.items) return objectsIn(schema.items, defined)
    if (isMap(schema)) return objectsIn(schema.additionalProperties, defined)
    return [].concat(...(schema.anyOf || schema.oneOf || []).map(variant => objectsIn(variant, defined)))
  }

  function fieldRow (name, schema, required, defined, depth) {
    const inner = depth < DEEPEST ? objectsIn(schema, defined) : []
    return element('li', {}, [
      element('code', { class: 'name' }, [name]), ' ',
      element('span', { class: 'type' }, [typeText(schema)]), ' ',
      required ? element('span', { class: 'required' }, ['required']) : null, ' ',
      element('span', { class: 'bounds' }, [boundsText(schema)]),
      schema.description ? element('div', {}, inline(schema.description)) : null
    ].concat(inner.map(object => fieldList(object, defined, depth + 1))))
  }

  function fieldList (object, defined, depth) {
    const required = object.required || []
    return element('ul', { class: 'fields' }, Object.keys(object.properties || {}).map(name =>
      fieldRow(name, object.properties[name], required.includes(name), defined, depth)))
  }

  function part (title, children) {
    return element('div', { class: 'part' }, [element('h4', {}, [title])].concat(children))
  }

  function contentPart (title, content, defined) {
    return Object.keys(content || {}).map(type => {
      const schema = content[type].schema || {}
      return part(title + ' ' + type, [
        element('div', { class: 'type' }, [typeText(schema)]),
        schema.description ? element('div', {}, inline(schema.description)) : null,
        content[type].example === undefined ? null : element('pre', { class: 'example' }, [JSON.stringify(content[type].example, null, 2)])
      ].concat(objectsIn(schema, defined).map(object => fieldList(object, defined, 0))))
    })
  }

  function parameterPart (parameters) {
    if (!parameters || parameters.length === 0) return []
    return [part('Parameters', [element('ul', { class: 'fields' }, parameters.map(parameter =>
      fieldRow(parameter.name + ' (' + parameter.in + ')', parameter.schema || {}, parameter.required, {}, DEEPEST)))])]
  }

  function curlPart (method, path, operation) {
    const line = curlLine(base, method, path, operation)
    const copy = element('button', { type: 'button' }, ['Copy'])
    copy.addEventListener('click', () => {
      navigator.clipboard.writeText(line).then(() => { copy.textContent = 'Copied' }, () => { copy.textContent = 'Select it and copy' })
    })
    return part('In a terminal', [element('pre', { class: 'curl' }, [line])].concat(navigator.clipboard ? [copy] : []))
  }

  function operationBox (method, path, operation, defined) {
    const answers = operation.responses || {}
    const box = element('details', { id: method + path.replace(/[^A-Za-z0-9]+/g, '-') }, [
      element('summary', {}, [
        element('span', { class: 'method ' + method }, [method.toUpperCase()]), ' ',
        element('code', {}, [path]), ' ',
        element('span', { class: 'summary' }, inline(operation.summary || ''))
      ])
    ].concat(
      markdown(operation.description),
      [curlPart(method, path, operation)],
      parameterPart(operation.parameters),
      contentPart('Body', (operation.requestBody || {}).content, defined),
      ...Object.keys(answers).filter(status => status !== 'default').map(status => {
        const parts = contentPart('Answer ' + status, answers[status].content, defined)
        return parts.length > 0 ? parts : [part('Answer ' + status, [])]
      })
    ))
    box.dataset.text = (method + ' ' + path + ' ' + (operation.summary || '')).toLowerCase()
    return box
  }

  function show (openapi) {
    const defined = (openapi.components || {}).schemas || {}
    const byTag = {}
    for (const tag of openapi.tags || []) byTag[tag.name] = []
    for (const path of Object.keys(openapi.paths)) {
      for (const method of Object.keys(openapi.paths[path])) {
        const operation = openapi.paths[path][method]
        const tag = (operation.tags || ['other'])[0]
        if (!byTag[tag]) byTag[tag] = []
        byTag[tag].push(operationBox(method, path, operation, defined))
      }
    }
    for (const tag of Object.keys(byTag)) {
      if (byTag[tag].length === 0) continue
      const id = 'group-' + tag.replace(/[^A-Za-z0-9]+/g, '-')
      const link = element('a', { href: '#' + id }, [tag + ' (' + byTag[tag].length + ')'])
      const section = element('section', { id: id }, [element('h2', {}, [tag])].concat(byTag[tag]))
      const item = element('li', {}, [link])
      groups.append(item)
      operations.append(section)
      listed.push({ tag: tag, item: item, link: link, section: section, boxes: byTag[tag] })
    }
    operations.append(element('section', { id: 'errors' }, [
      element('h2', {}, ['Errors']),
      element('p', {}, ['What the gateway itself refuses has this shape. On /v1 the words of an engine or upstream pass as they are, and /v1/messages refuses in its own.'])
    ].concat(defined.Error ? [fieldList(defined.Error, defined, 0)] : [])))
    notice.textContent = openapi.info.title + ' ' + openapi.info.version
  }

  function filter () {
    const wanted = search.value.toLowerCase().trim()
    let count = 0
    for (const { tag, item, link, section, boxes } of listed) {
      const whole = tag.toLowerCase().includes(wanted)
      for (const box of boxes) box.hidden = !whole && !box.dataset.text.includes(wanted)
      const shown = boxes.filter(box => !box.hidden).length
      section.hidden = item.hidden = shown === 0
      link.textContent = tag + ' (' + shown + ')'
      count += shown
    }
    const errors = document.getElementById('errors')
    if (errors !== null) errors.hidden = wanted !== ''
    nothing.hidden = count > 0
  }

  function openNamed () {
    const named = document.getElementById(decodeURIComponent(location.hash.slice(1)))
    if (named === null) return
    if (named.tagName === 'DETAILS') named.open = true
    named.scrollIntoView()
  }

  search.addEventListener('input', filter)
  addEventListener('hashchange', openNamed)
  fetch('openapi.json')
    .then(answer => {
      if (!answer.ok) throw new Error('openapi.json answered ' + answer.status)
      return answer.json()
    })
    .then(openapi => { show(openapi); openNamed() })
    .catch(error => { notice.textContent = 'The document cannot be shown: ' + error.message })
})()
`

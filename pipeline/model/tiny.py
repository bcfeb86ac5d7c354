"""Tiny random-weight backbones of each family, generated at run time: for tests, and to try a pipeline in minutes."""

import torch
import transformers
import yaml
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from pipeline.workspace.record import Json

SPECIAL = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>"}
FAMILIES: dict[str, Json] = yaml.safe_load("""
bert: {class: [Bert, Model], hidden_size: 32, intermediate_size: 48, num_hidden_layers: 3, num_attention_heads: 4}
distilbert: {class: [DistilBert, Model], dim: 32, hidden_dim: 48, n_layers: 3, n_heads: 4}
llama: {class: [Llama, ForCausalLM], hidden_size: 32, intermediate_size: 48, num_hidden_layers: 4,
  num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 4096, tie_word_embeddings: true,
  initializer_range: 0.2}
bart: {class: [Bart, ForConditionalGeneration], d_model: 32, encoder_layers: 2, decoder_layers: 3,
  encoder_ffn_dim: 48, decoder_ffn_dim: 48, encoder_attention_heads: 4, decoder_attention_heads: 4, dropout: 0.0,
  attention_dropout: 0.0, decoder_start_token_id: 2, forced_bos_token_id: 0, forced_eos_token_id: null, init_std: 0.3,
  max_position_embeddings: 4096}
longt5: {class: [LongT5, ForConditionalGeneration], d_model: 32, d_kv: 8, d_ff: 48, num_layers: 3,
  num_decoder_layers: 3, num_heads: 4, local_radius: 7, encoder_attention_type: transient-global, global_block_size: 8,
  dropout_rate: 0.0, initializer_factor: 2.0, decoder_start_token_id: 1}
led: {class: [LED, ForConditionalGeneration], d_model: 32, encoder_layers: 2, decoder_layers: 3,
  encoder_ffn_dim: 48, decoder_ffn_dim: 48, encoder_attention_heads: 4, decoder_attention_heads: 4, dropout: 0.0,
  attention_dropout: 0.0, decoder_start_token_id: 2, forced_bos_token_id: 0, forced_eos_token_id: null, init_std: 0.3,
  attention_window: 16, max_encoder_position_embeddings: 4096, max_decoder_position_embeddings: 1024}
""")
"""Family -> the two parts of its class's name in transformers, and its configuration."""


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level tokenizer without merges: 4 special tokens and 256 bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([*SPECIAL.values(), *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _fast(tokenizer, {**SPECIAL, "sep": "</s>"})


def tiny_wordpieces() -> PreTrainedTokenizerFast:
    """A WordPiece tokenizer of single letters, digits and signs, in lower case, as BERT's would be."""
    special = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    signs = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    words = [*special.values(), *signs, *(f"##{sign}" for sign in signs)]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    numbers = [(special[name], vocabulary[special[name]]) for name in ("cls", "sep")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=numbers
    )
    return _fast(tokenizer, special)


def _fast(tokenizer: Tokenizer, special: dict[str, str]) -> PreTrainedTokenizerFast:
    """transformers' tokenizer, with the special tokens of these roles."""
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **{f"{role}_token": word for role, word in special.items()}
    )


def tiny_encoder(family: str, seed: int = 0) -> PreTrainedModel:
    """A random encoder of three layers: `bert` or `distilbert`."""
    more = {"add_pooling_layer": False} if family == "bert" else {}
    return _model(family, seed, {"vocab_size": len(tiny_wordpieces()), "initializer_range": 0.2}, **more)


def tiny_model(family: str, seed: int = 0) -> PreTrainedModel:
    """A random model of two to four layers: `llama`, `bart`, `led` or `longt5`."""
    vocabulary = {"vocab_size": len(SPECIAL) + 256, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    return _model(family, seed, vocabulary)


def _model(family: str, seed: int, vocabulary: Json, **more: bool) -> PreTrainedModel:
    """A random model of a family's class and configuration."""
    torch.manual_seed(seed)
    sizes = dict(FAMILIES[family])
    name, head = sizes.pop("class")
    config = getattr(transformers, f"{name}Config")(**vocabulary, **sizes)
    return getattr(transformers, f"{name}{head}")(config, **more)

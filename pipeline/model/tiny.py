"""Tiny random-weight backbones of each family, generated at run time: for tests, and to try a pipeline in minutes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    LEDConfig,
    LEDForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    LongT5Config,
    LongT5ForConditionalGeneration,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
_COMMON = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level tokenizer without merges: 4 special tokens and 256 bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([*SPECIAL, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        sep_token="</s>",
        unk_token="<unk>",
    )


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
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **{f"{name}_token": word for name, word in special.items()}
    )


def tiny_encoder(family: str, seed: int = 0) -> PreTrainedModel:
    """A random encoder of three layers: `bert` or `distilbert`."""
    torch.manual_seed(seed)
    words = len(tiny_wordpieces())
    if family == "bert":
        sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
        return BertModel(BertConfig(vocab_size=words, initializer_range=0.2, **sizes), add_pooling_layer=False)
    config = DistilBertConfig(vocab_size=words, dim=32, hidden_dim=48, n_layers=3, n_heads=4, initializer_range=0.2)
    return DistilBertModel(config)


def tiny_model(family: str, seed: int = 0) -> PreTrainedModel:
    """A random model of two to four layers: `llama`, `bart`, `led` or `longt5`."""
    torch.manual_seed(seed)
    return _MODELS[family](len(SPECIAL) + 256)


def _llama(words: int) -> PreTrainedModel:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=words,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
            initializer_range=0.2,
            **_COMMON,
        )
    )


def _longt5(words: int) -> PreTrainedModel:
    return LongT5ForConditionalGeneration(
        LongT5Config(
            vocab_size=words,
            d_model=32,
            d_kv=8,
            d_ff=48,
            num_layers=3,
            num_decoder_layers=3,
            num_heads=4,
            local_radius=7,
            encoder_attention_type="transient-global",
            global_block_size=8,
            dropout_rate=0.0,
            decoder_start_token_id=1,
            pad_token_id=1,
            eos_token_id=2,
            initializer_factor=2.0,
        )
    )


_BART = dict(
    d_model=32,
    encoder_layers=2,
    decoder_layers=3,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=48,
    decoder_ffn_dim=48,
    dropout=0.0,
    attention_dropout=0.0,
    decoder_start_token_id=2,
    forced_bos_token_id=0,
    forced_eos_token_id=None,
    init_std=0.3,
    **_COMMON,
)


def _bart(words: int) -> PreTrainedModel:
    return BartForConditionalGeneration(BartConfig(vocab_size=words, max_position_embeddings=4096, **_BART))


def _led(words: int) -> PreTrainedModel:
    positions = {"max_encoder_position_embeddings": 4096, "max_decoder_position_embeddings": 1024}
    return LEDForConditionalGeneration(LEDConfig(vocab_size=words, attention_window=16, **positions, **_BART))


_MODELS: dict[str, Callable[[int], PreTrainedModel]] = {"llama": _llama, "bart": _bart, "led": _led, "longt5": _longt5}

"""A user's ``KerasModel``, on the backend that is installed."""

from ..tensorflow.model import OnTensorFlow, layer_stores
from ..theano.model import OnTheano
from ..user_model import UserModel as Base
from .runtime import BACKEND


class UserModel(OnTensorFlow if BACKEND == "tensorflow" else OnTheano):
    """Its default state are the weights of the layers and models that it holds."""

    framework = "keras"
    label = "Keras"
    precisions = Base.precisions

    def prepare(self, device, precision):
        """See UserModel of ``user_model``; Keras 2 on TensorFlow 1.x gets a new graph and session."""
        super(UserModel, self).prepare(device, precision)
        import keras

        if BACKEND != "tensorflow" or self.is_v1:
            keras.backend.clear_session()

    def seed(self, number):
        """See UserModel of ``user_model``; Keras 3 has a generator of its own."""
        import keras

        super(UserModel, self).seed(number)
        getattr(getattr(keras, "utils", None), "set_random_seed", int)(number)

    def stores(self):
        return layer_stores(self.attributes()) or super(UserModel, self).stores()
